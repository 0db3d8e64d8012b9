/* SPDX-License-Identifier: Apache-2.0 */
/* peer_end.h - ends a peer, or an attempt to reach it. All with process->lock held. */
#ifndef MESH_CONTROL_PEER_END_H
#define MESH_CONTROL_PEER_END_H

#include "base/lock.h"
#include "control/peer.h"

/**
 * Declares the peer lost, with @reason in the log; its comms fail soon after, from
 * mesh_peer_tick(). Idempotent. process->lock held; takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_lose(struct mesh_peer *peer, const char *reason);

/** Ends this attempt; an outgoing peer tries again soon, an incoming one is lost. */
MESH_HOLDS(process)
void mesh_peer_retry(struct mesh_peer *peer, const char *reason);

/** Drops a greeting that the provider has not accepted yet: its attempt is over. */
void mesh_peer_greeting_drop(struct mesh_peer *peer);

#endif
