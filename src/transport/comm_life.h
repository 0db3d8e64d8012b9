/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_life.h - a comm is made, ends, closes and is freed.
 */
#ifndef MESH_TRANSPORT_COMM_LIFE_H
#define MESH_TRANSPORT_COMM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"
#include "transport/comm.h"

/* ---- made and freed (comm_life.c) ------------------------------------------------------------ */

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

/** A frame of the control connection that is for a comm: CLOSE, ASK, RESUME or HAVE. */
MESH_HOLDS(process)
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

/* ---- the states of its two ends (comm_end.c) ------------------------------------------------- */

/* Also the engine's part of closing: it answers peers that close; and the fence of one comm. */

/** Notes what the peer reports about its end; a late report is ignored. comm->lock held. */
MESH_HOLDS(comm)
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state);

/**
 * Ends the comm at once, at both ends: no frame is sent, and what was in flight is lost. Logs @why
 * at INFO only, because the caller logs one line for all of its comms. process->lock held.
 *
 * Returns whether NCCL still used it.
 */
MESH_HOLDS(process)
bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why);

/** The peer with which frames about this comm are exchanged. process->lock held. */
MESH_HOLDS(process)
static inline struct mesh_peer *mesh_comm_frame_peer(const struct mesh_comm *comm)
{
	return mesh_comm_frame_path(comm)->peer;
}

/**
 * Takes a step of our end and informs the peer. The engine and NCCL's thread may both call it: the
 * second call does nothing. process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_end_step(struct mesh_comm *comm, enum mesh_end state);

/**
 * Sends the frame about our end once more if a lost path may have dropped it. Without a path it is
 * sent when there is one. process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_end_repeat(struct mesh_comm *comm);

/** CLOSE came from the comm's peer. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_close_came(struct mesh_comm *comm, const struct mesh_frame_close *frame);

/**
 * Sends CLOSED for a comm that our NCCL never received; the caller frees it next. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_comm_refuse(const struct mesh_comm *comm);

/** True if no path needs a fence: nothing of the comm is in flight, or may arrive. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
bool mesh_paths_are_at_rest(const struct mesh_comm *comm);

/**
 * Brings the paths of a comm that ends to rest: circuits are left, and fenced if that takes too
 * long; the links of the others are lost, and fenced. Other comms there go on as after any loss. To
 * be called until it returns true. No lock held.
 *
 * @late: nothing has moved on it for MESH_LINK_FRAME_MS
 */
bool mesh_comm_fence_step(struct mesh_comm *comm, bool late);

/**
 * Writes of a sender that have not completed after that may never complete. They keep the comm
 * allocated, but no longer count against the window of the flow, which other comms need. No lock.
 */
void mesh_comm_writes_forget(struct mesh_comm *comm);

/* ---- closed (close.c) ------------------------------------------------------------------------ */

/**
 * Brings the comm to rest: it starts nothing new, the peer has confirmed that, and no operation in
 * flight touches the memory of its requests. Waits a bounded time; a peer that does not answer is
 * fenced. No lock held.
 *
 * Returns true if the answer to our CLOSED is awaited: no abort, and it has not come.
 */
bool mesh_comm_quiesce(struct mesh_comm *comm);

/*
 * A sender that has nothing in flight needs only the receiver's word that everything has arrived,
 * because its process may end. NCCL closes its comms one after the other, so a close does not wait
 * for that word: the comm lingers, and the engine frees it. The close of the last comm waits for
 * all that linger; so do mesh_net_close() and exit().
 *
 * A receiver lingers as well: its CLOSED may be lost with a link, and the sender's doubt about what
 * has arrived ends with it.
 */

/**
 * Closes a send or receive comm. Waits a bounded time for operations in flight; afterwards nothing
 * reads or writes the memory of its requests. NULL is allowed. No lock held.
 */
void mesh_comm_close(struct mesh_comm *comm);

/** CLOSED has come for the comm: frees it if it lingers and the peer has answered. */
MESH_HOLDS(process)
void mesh_comm_linger_check(struct mesh_comm *comm);

/** Waits a bounded time until no comm lingers. No lock held. */
void mesh_comms_linger_await(struct mesh_process *process);

/** The owner of comms is freed: another one at its address does not abort. No lock held. */
void mesh_abort_forget(struct mesh_process *process, const void *owner);

#endif
