/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_park.h - takes a peer's link out of use, so that its cable can be pulled without a loss.
 *
 * Each end stops posting on the link, waits until what it posted is complete, and then greets the
 * other one through the fabric, behind everything else: the connecting end first. The reply says
 * that nothing is in flight in either direction. docs/protocol/draining.md. All with process->lock
 * held.
 */
#ifndef MESH_CONTROL_PEER_PARK_H
#define MESH_CONTROL_PEER_PARK_H

#include "base/lock.h"
#include "control/peer.h"

/** A new peer's link is in use. */
MESH_HOLDS(process)
void mesh_peer_park_init(struct mesh_peer *peer);

/** The peer is up: it may have sent PARK already. */
MESH_HOLDS(process)
void mesh_peer_park_up(struct mesh_peer *peer);

/**
 * Our NIC of the peer's link is to be drained, or no longer. Without effect on a peer that is not
 * up, or where nothing changes.
 */
MESH_HOLDS(process)
void mesh_peer_park(struct mesh_peer *peer, bool wanted);

/** PARK from the peer. */
MESH_HOLDS(process)
void mesh_peer_park_came(struct mesh_peer *peer, const struct mesh_frame_park *frame);

#endif
