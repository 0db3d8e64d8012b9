/* SPDX-License-Identifier: Apache-2.0 */
/* comm_open.h - makes a comm, adds paths to it, closes and frees it. */
#ifndef MESH_TRANSPORT_COMM_OPEN_H
#define MESH_TRANSPORT_COMM_OPEN_H

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Makes a comm with its first path, through @peer. process->lock held.
 *
 * @owner: the mesh_net that closes it; @key: random, the same at both ends; @wanted_paths: how many
 * paths it will have
 *
 * Returns 0, -ENOMEM, or -ENOSPC if the domain has no id left.
 */
MESH_HOLDS(process)
int mesh_comm_open(const void *owner, bool sending, struct mesh_peer *peer, uint64_t key,
		   int wanted_paths, struct mesh_comm **comm);

/**
 * Adds the next path, through @peer, whose domain's table it enters. Returns as mesh_comm_open()
 * does; also -ENOSPC if the comm has all of its paths.
 */
MESH_HOLDS(process)
int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer);

/**
 * The same for a sending comm and its paths through a relay, which is the peer. @name: the name of
 * the node at the other end.
 */
MESH_HOLDS(process)
int mesh_comm_open_relayed(const void *owner, struct mesh_peer *relay, const char *name,
			   uint64_t key, int wanted_paths, struct mesh_comm **comm);
MESH_HOLDS(process)
int mesh_comm_path_add_relayed(struct mesh_comm *comm, struct mesh_peer *relay);

/** Frees a comm that has no registrations and nothing in flight. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_free(struct mesh_comm *comm);

/** Frees the memory of a comm to which nothing refers. */
void mesh_comm_memory_free(struct mesh_comm *comm);

#endif
