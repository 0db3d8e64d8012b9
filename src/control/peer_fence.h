/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_fence.h - cuts the provider's connections with a lost peer. All with process->lock held.
 *
 * On verbs a cut takes up to some seconds: while the peer's NIC may refuse a write, and while our
 * endpoint is being closed. Nothing waits for it with a lock held: the peer's timer goes on with
 * it, and until it is over the link is not used again (link_settle.h) and no question about what
 * has arrived there is answered (src/transport/recovery.c).
 */
#ifndef MESH_CONTROL_PEER_FENCE_H
#define MESH_CONTROL_PEER_FENCE_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/**
 * Cuts the provider's connections with a lost peer, and reads what had arrived: afterwards nothing
 * that it sent is written, or still to be counted. Takes domain->lock.
 *
 * Returns false while that is in progress, on verbs: call it again later. And if it has failed, on
 * tcp, after a WARN: then peer->fenced is MESH_FENCED_FAILED, and its users are to be notified with
 * mesh_peer_unfenced().
 */
MESH_HOLDS(process)
bool mesh_peer_fence(struct mesh_peer *peer);

/** True while it is: something of the lost peer may still arrive. */
MESH_HOLDS(process)
bool mesh_peer_is_fencing(const struct mesh_peer *peer);

/** The peer is freed: what is in progress goes on without it. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_peer_fence_end(struct mesh_peer *peer);

#endif
