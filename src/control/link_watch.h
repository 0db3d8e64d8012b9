/* SPDX-License-Identifier: Apache-2.0 */
/* link_watch.h - checks links, and loses those that are dead. All with process->lock held. */
#ifndef MESH_CONTROL_LINK_WATCH_H
#define MESH_CONTROL_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
