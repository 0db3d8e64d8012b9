/* SPDX-License-Identifier: Apache-2.0 */
/* link_watch.h - looks at links, and loses those that are dead. All with process->lock held. */
#ifndef MESH_CONTROL_LINK_WATCH_H
#define MESH_CONTROL_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "control/peer.h"

/**
 * Declares all peers of @peer's link lost, at once: nothing more can arrive from there.
 *
 * @tell: what they are told before, if they can still hear; 0 for nothing
 */
void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal tell);

/**
 * mesh_link_lose(), because nothing has come from there for NCCL_MESH_DEAD_PEER_TIMEOUT.
 *
 * @error: with which the kernel has ended a connection; 0 if it has not: then it is asked for the
 *         error that it met on the control connections, if any
 */
void mesh_link_timed_out(struct mesh_peer *peer, int error);

/**
 * The other process has given a link up: the one that the frame came over, or the one that @detail
 * names (mesh_link_name()), if it is not 0.
 */
void mesh_link_given_up(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail);

/** Looks at the links that are due, and loses those that are dead. */
void mesh_links_tick(struct mesh_process *process, uint64_t now_ms);

/** True while a link must be looked at though nobody polls. */
bool mesh_links_pending(const struct mesh_process *process);

#endif
