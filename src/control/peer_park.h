/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_park.h - takes a peer's link out of use, because a NIC of it is drained: comms that have
 * another path post nothing more on it. docs/protocol/recovery.md. All with process->lock held.
 */
#ifndef MESH_CONTROL_PEER_PARK_H
#define MESH_CONTROL_PEER_PARK_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/** True while the link is out of use, for our NIC or for the peer's. */
MESH_HOLDS(process)
static inline bool mesh_peer_is_parked(const struct mesh_peer *peer)
{
	return peer->parked_here || peer->parked_there;
}

/**
 * Our NIC of the peer's link is drained, or no longer. Without effect on a peer that is not up, or
 * where nothing changes.
 */
MESH_HOLDS(process)
void mesh_peer_park(struct mesh_peer *peer, bool parked);

/** PARK from the peer. */
MESH_HOLDS(process)
void mesh_peer_park_came(struct mesh_peer *peer, const struct mesh_frame_park *frame);

#endif
