/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_end.h - ends a peer, or an attempt to reach it, cuts the provider's connections with a lost
 * one, and brings to rest what was lost on a link, before it is used again. All with process->lock
 * held.
 *
 * The provider has one connection between two endpoints, in both directions and for all comms. What
 * was posted before the loss must neither be sent over a new one, nor be fenced together with it.
 * So each end stops first: it sends HELLO once none of its operations is in flight on that link.
 * Each end that reads a HELLO knows that the other one has stopped, and fences, once.
 *
 * On verbs a cut takes up to some seconds: while the peer's NIC may refuse a write, and while our
 * endpoint is being closed. Nothing waits for it with a lock held: the peer's timer goes on with
 * it, and until it is over the link is not used again, and no question about what
 * has arrived there is answered (src/transport/recovery.c).
 */
#ifndef MESH_CONTROL_PEER_END_H
#define MESH_CONTROL_PEER_END_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "control/peer.h"

/* Why an attempt starts anew: mesh_endpoints_check(). */
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
 * connection that ends in order means that the process has ended. So one that is up or that greets,
 * or has frames that were not sent, is reset.
 */
MESH_HOLDS(process)
void mesh_peer_attempt_end(struct mesh_peer *peer);

/** Ends the attempt of an outgoing peer that is not up, and has the engine start another one. */
MESH_HOLDS(process)
void mesh_peer_hasten(struct mesh_peer *peer);

/** Drops a greeting that the provider has not accepted yet: its attempt is over. */
void mesh_peer_greeting_drop(struct mesh_peer *peer);

/**
 * Declares all peers of @peer's link lost at once: nothing more can arrive over it.
 *
 * @refusal: sent over the link and over the process's other links before; 0: over this link only
 */
MESH_HOLDS(process)
void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal refusal);

/** Loses the peer's link, which has a verdict. */
MESH_HOLDS(process)
void mesh_link_dead_lose(struct mesh_peer *peer);

/** True if nothing of ours is in flight to a lost peer on the same link, and none is fenced now. */
MESH_HOLDS(process)
bool mesh_link_is_quiet(const struct mesh_peer *peer);

/**
 * The process at the other end of @peer's link has sent HELLO, so it has stopped: fences the peers
 * of this process that were lost there, and informs their users. An incoming peer that seems to be
 * up there is lost, because its process connects anew. Takes domain->lock.
 *
 * Returns false if operations of ours are in flight there, or a fence is in progress: later.
 */
MESH_HOLDS(process)
bool mesh_link_settle(struct mesh_peer *peer);

/**
 * True if comms have lost the link of @peer, which is up again.
 *
 * @logged: set if a WARN reported that, of this lane or another one, which is forgotten
 */
MESH_HOLDS(process)
bool mesh_link_was_lost(const struct mesh_peer *peer, bool *logged);

/**
 * Loses the links of a NIC that broke, and the other links over endpoints that were closed, as the
 * fence of one link: they come back with the new endpoints' names. To be called after each event.
 */
MESH_HOLDS(process)
void mesh_endpoints_check(struct mesh_process *process);

/** Writes what the error of a control connection means into @reason, @size bytes. */
void mesh_control_errno_explain(int error, char *reason, size_t size);

#endif
