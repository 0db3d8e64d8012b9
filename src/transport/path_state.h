/* SPDX-License-Identifier: Apache-2.0 */
/* path_state.h - whether a path of a comm carries messages, and the legal steps. */
#ifndef MESH_TRANSPORT_PATH_STATE_H
#define MESH_TRANSPORT_PATH_STATE_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** True if the path is in this state. process->lock held; takes comm->lock. */
MESH_HOLDS(process)
bool mesh_path_is(const struct mesh_path *path, enum mesh_path_state state);

/** The only way to change a path's state; asserts the legal steps. comm->lock held. */
MESH_HOLDS(comm)
void mesh_path_state_set(struct mesh_path *path, enum mesh_path_state state);

/**
 * Nothing more arrives on the path; if it is in state @from, it is down. Takes domain->lock and
 * comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_down(struct mesh_path *path, enum mesh_path_state from);

/** Both ends know the path: it carries messages from now on. Takes comm->lock. */
MESH_HOLDS(process)
void mesh_path_accepted(struct mesh_path *path, const struct mesh_frame_accept *accept);

/**
 * Posts nothing more on the path, because an operation on it failed; the engine loses its link
 * then. Without effect on a path that is not up. comm->lock held.
 *
 * @error: negative errno
 */
MESH_HOLDS(comm)
void mesh_path_suspect(struct mesh_path *path, int error);

/** The engine looks after the comm's lost paths soon. Any lock may be held. */
void mesh_comm_recover_soon(struct mesh_comm *comm);

/** The tier of the paths that carry the comm's messages; DRAINED: none is up. Takes comm->lock. */
enum mesh_path_tier mesh_comm_tier(struct mesh_comm *comm);

/** The tier of a path from our NIC @dev to the peer's, over a link that they share or @routed. */
MESH_HOLDS(process)
enum mesh_path_tier mesh_link_tier(const struct mesh_process *process, int dev,
				   const struct mesh_endpoint_addr *remote, bool routed);

/** Learns the tiers of the comm's paths: one is up, or a link is drained, or no longer. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
void mesh_comm_tiers_learn(struct mesh_comm *comm);

/** Sets what depends on all paths of the comm. To be called whenever one is added. */
void mesh_comm_paths_learn(struct mesh_comm *comm);

#endif
