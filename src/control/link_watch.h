/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_watch.h - checks links, loses those that are dead, and brings to rest what was lost on a
 * link, before it is used again. All with process->lock held.
 *
 * The provider has one connection between two endpoints, in both directions and for all comms. What
 * was posted before the loss must neither be sent over a new one, nor be fenced together with it.
 * So each end stops first: it sends HELLO once none of its operations is in flight on that link.
 * Each end that reads a HELLO knows that the other one has stopped, and fences, once.
 */
#ifndef MESH_CONTROL_LINK_WATCH_H
#define MESH_CONTROL_LINK_WATCH_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/**
 * Declares all peers of @peer's link lost at once: nothing more can arrive over it.
 *
 * @refusal: sent over the link and over the process's other links before; 0: over this link only
 */
MESH_HOLDS(process)
void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal refusal);

/**
 * Calls mesh_link_lose(), because nothing has arrived for NCCL_MESH_DEAD_PEER_TIMEOUT.
 *
 * @error: that ended the connection; 0 if the kernel has not ended it: then the kernel's pending
 *         error of the control connections is read, if there is one
 */
MESH_HOLDS(process)
void mesh_link_timed_out(struct mesh_peer *peer, int error);

/**
 * Loses a link that the other process has given up: the one that @refuse names or, if it names
 * none, the one that the frame came over. A frame about an earlier life of the link has no effect.
 */
MESH_HOLDS(process)
void mesh_link_given_up(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse);

/** Calls mesh_link_join(), and has the link checked when it is due. */
MESH_HOLDS(process)
void mesh_link_watch(struct mesh_peer *peer);

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

#endif
