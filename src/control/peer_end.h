/* SPDX-License-Identifier: Apache-2.0 */
/* peer_end.h - ends a peer, or an attempt to reach it. All with process->lock held. */
#ifndef MESH_CONTROL_PEER_END_H
#define MESH_CONTROL_PEER_END_H

#include "base/lock.h"
#include "control/peer.h"

/* Why an attempt starts anew: endpoints.h. */
#define MESH_ENDPOINT_OPENING "the endpoint of the NIC here is being opened anew"

/*
 * Where each attempt is refused for so long, the process has ended. A firewall's reload refuses for
 * a moment, too; where a process ends in order, its control connections have said so before.
 */
#define MESH_REFUSED_MS 2000

/**
 * Declares the peer lost, with @reason in the log; its comms fail soon after, from
 * mesh_peer_tick(). Idempotent. process->lock held; takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_lose(struct mesh_peer *peer, const char *reason);

/**
 * The process of @peer has ended: none of its users goes on, also those that wait for a lost link.
 *
 * @why: for a WARN, if some of them wait
 */
MESH_HOLDS(process)
void mesh_peer_process_ended(struct mesh_peer *peer, const char *why);

/** True if a user goes on when this peer is lost. process->lock held. */
MESH_HOLDS(process)
bool mesh_peer_is_resumed(const struct mesh_peer *peer);

/**
 * Notifies the users of a lost peer, once: what it sent before has had time to arrive. Where users
 * go on without it, a cut of the provider's connections with it begins before, so that every
 * operation that is in flight there ends (peer_fence.h). Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_bury(struct mesh_peer *peer);

/**
 * Notifies the users of a lost peer again if its fence has failed: none of them goes on. Takes
 * domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_unfenced(struct mesh_peer *peer);

/** Ends this attempt; an outgoing peer tries again soon, an incoming one is lost. */
MESH_HOLDS(process)
void mesh_peer_retry(struct mesh_peer *peer, const char *reason);

/**
 * Says that this attempt is over, if the other end may believe that it has succeeded: there a
 * connection that ends without a word means that the process has ended. So one that is up, or has
 * frames that were not sent, is reset.
 */
MESH_HOLDS(process)
void mesh_peer_attempt_end(struct mesh_peer *peer);

/** Ends the attempt of an outgoing peer that is not up, and has the engine start another one. */
MESH_HOLDS(process)
void mesh_peer_hasten(struct mesh_peer *peer);

/** Drops a greeting that the provider has not accepted yet: its attempt is over. */
void mesh_peer_greeting_drop(struct mesh_peer *peer);

#endif
