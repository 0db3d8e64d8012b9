/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_settle.h - brings to rest what was lost on a link, before the link is used again.
 *
 * The provider has one connection between two endpoints, in both directions and for all comms. What
 * was posted before the loss must neither be sent over a new one, nor be fenced together with it.
 * So each end stops first: it sends HELLO once none of its operations is in flight on that link.
 * Each end that reads a HELLO knows that the other one has stopped, and fences, once.
 */
#ifndef MESH_CONTROL_LINK_SETTLE_H
#define MESH_CONTROL_LINK_SETTLE_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/**
 * True if nothing of ours is in flight to a lost peer on the same link, and none is being fenced.
 * process->lock held.
 */
MESH_HOLDS(process)
bool mesh_link_is_quiet(const struct mesh_peer *peer);

/**
 * The process at the other end of @peer's link has sent HELLO, so it has stopped: fences the peers
 * of this process that were lost there, and informs their users. An incoming peer that seems to be
 * up there is lost, because its process connects anew. process->lock held; takes domain->lock.
 *
 * Returns false if operations of ours are in flight there, or a fence is in progress: later.
 */
MESH_HOLDS(process)
bool mesh_link_settle(struct mesh_peer *peer);

/**
 * True if comms have lost the link of @peer, which is up again. process->lock held.
 *
 * @logged: set if a WARN reported that, of this lane or another one, which is forgotten
 */
MESH_HOLDS(process)
bool mesh_link_was_lost(const struct mesh_peer *peer, bool *logged);

#endif
