/* SPDX-License-Identifier: Apache-2.0 */
/* comm_open.h - makes a comm, adds paths to it, closes and frees it. */
#ifndef MESH_TRANSPORT_COMM_OPEN_H
#define MESH_TRANSPORT_COMM_OPEN_H

#include "base/lock.h"
#include "transport/comm.h"

/* What a new comm is to be. */
struct mesh_comm_wish {
	bool sending;
	int num_paths;			  /* that it will have */
	uint64_t key;			  /* random, the same at both ends */
	const struct mesh_handle *handle; /* sending: of the listener at the other end */
	/* The node's name at the other end of relays, through which its paths lead; NULL: none. */
	const char *relayed_to;
};

/**
 * Makes a comm with its first path, through @peer. process->lock held.
 *
 * @owner: the mesh_net that closes it
 *
 * Returns 0, -ENOMEM, -ENOSPC if the domain has no id left, or another negative errno.
 */
MESH_HOLDS(process)
int mesh_comm_open(const void *owner, struct mesh_peer *peer, const struct mesh_comm_wish *wish,
		   struct mesh_comm **comm);

/**
 * Adds the next path, through @peer, a @relay or the process at the other end, whose domain's table
 * it enters. Returns as mesh_comm_open() does; also -ENOSPC if the comm has all of its paths.
 */
MESH_HOLDS(process)
int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer, bool relay);

/** A link of the comm is drained, a NIC has become a reserve, or neither any longer. */
MESH_HOLDS(process)
void mesh_comm_tiers_renew(struct mesh_comm *comm);

/** Frees a comm that has no registrations and nothing in flight. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_free(struct mesh_comm *comm);

/** Frees the memory of a comm to which nothing refers. */
void mesh_comm_memory_free(struct mesh_comm *comm);

#endif
