/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_open.h - makes a comm, adds paths to it, closes and frees it.
 *
 * A sender that has nothing in flight needs only the receiver's word that everything has arrived,
 * because its process may end. NCCL closes its comms one after the other, so a close does not wait
 * for that word while the process has other comms, if the receiver's kernel or NIC has acknowledged
 * every byte: the comm lingers, and the engine frees it. The close of the last comm waits for all
 * that linger; so do mesh_net_close() and exit(). A process that ends without them loses nothing.
 *
 * A receiver lingers as well: its CLOSED may be lost with a link, and the
 * sender's doubt about what has arrived ends with it.
 */
#ifndef MESH_TRANSPORT_COMM_OPEN_H
#define MESH_TRANSPORT_COMM_OPEN_H

#include "base/lock.h"
#include "control/process.h"
#include "transport/comm.h"

/* What a new comm is to be. */
struct mesh_comm_wish {
	int num_paths; /* that it will have */
	uint64_t key;  /* random, the same at both ends */
	/* Of the listener at the other end; NULL: the comm receives. */
	const struct mesh_handle *handle;
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

/**
 * Closes a send or receive comm. Waits a bounded time for operations in flight; afterwards nothing
 * reads or writes the memory of its requests. NULL is allowed. No lock held.
 */
void mesh_comm_close(struct mesh_comm *comm);

/** A frame of the control connection that is for a comm: CLOSE, ASK, RESUME or HAVE. */
MESH_HOLDS(process)
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

/** Waits a bounded time until no comm lingers. No lock held. */
void mesh_comms_linger_await(struct mesh_process *process);

#endif
