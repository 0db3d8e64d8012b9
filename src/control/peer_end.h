/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_end.h - ends a peer, or an attempt to reach it, and cuts the provider's connections with a
 * lost one. All with process->lock held.
 *
 * On verbs a cut takes up to some seconds: while the peer's NIC may refuse a write, and while our
 * endpoint is being closed. Nothing waits for it with a lock held: the peer's timer goes on with
 * it, and until it is over the link is not used again (link_watch.h) and no question about what
 * has arrived there is answered (src/transport/recovery.c).
 */
#ifndef MESH_CONTROL_PEER_END_H
#define MESH_CONTROL_PEER_END_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "control/peer.h"

/* Why an attempt starts anew: link_watch.h. */
#define MESH_ENDPOINT_OPENING "the endpoint of the NIC here is being opened anew"

/*
 * Where each attempt is refused for so long, the process has ended. A firewall's reload refuses for
 * a moment, too; where a process ends in order, its control connections have said so before.
 */
#define MESH_REFUSED_MS 2000

/**
 * Declares the peer lost, with @reason in the log; its comms fail soon after, from
 * mesh_peer_tick(). Idempotent. Takes domain->lock.
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

/** True if a user goes on when this peer is lost. */
MESH_HOLDS(process)
bool mesh_peer_is_resumed(const struct mesh_peer *peer);

/**
 * Notifies the users of a lost peer, once: what it sent before has had time to arrive. Where users
 * go on without it, a cut of the provider's connections with it begins before, so that every
 * operation that is in flight there ends. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_bury(struct mesh_peer *peer);

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

/**
 * Cuts the provider's connections with a lost peer, and reads what had arrived: afterwards nothing
 * that it sent is written, or still to be counted. Takes domain->lock.
 *
 * Returns false while that is in progress, on verbs: call it again later. And if it has failed, on
 * tcp, after a WARN: then peer->fenced is MESH_FENCED_FAILED, and its users were notified again:
 * none of them goes on.
 */
MESH_HOLDS(process)
bool mesh_peer_fence(struct mesh_peer *peer);

/** True while it is: something of the lost peer may still arrive. */
MESH_HOLDS(process)
bool mesh_peer_is_fencing(const struct mesh_peer *peer);

/** The peer is freed: what is in progress goes on without it. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_peer_fence_end(struct mesh_peer *peer);

/** Writes what the error of a control connection means into @reason, @size bytes. */
void mesh_control_errno_explain(int error, char *reason, size_t size);

#endif
