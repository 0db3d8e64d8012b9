/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_end.h - the states of a comm's two ends, from open to closed; the engine's part of closing:
 * it answers peers that close; and the fence that cuts off a peer.
 */
#ifndef MESH_TRANSPORT_COMM_END_H
#define MESH_TRANSPORT_COMM_END_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"

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
 * Adds the comm to those whose peer waits for our end, or removes it. Idempotent. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_comm_asked_set(struct mesh_comm *comm, bool asked);

/**
 * Answers each peer that waits for our end of a comm, if it can be answered, and ends the wait for
 * what a peer has in flight on a comm that is freed. process->lock held.
 */
MESH_HOLDS(process)
void mesh_comms_asked_tick(struct mesh_process *process, uint64_t now_ms);

/**
 * How soon mesh_comms_asked_tick() is to be called again, in milliseconds: 0 while a peer waits, -1
 * if none does. process->lock held.
 */
MESH_HOLDS(process)
int mesh_comms_asked_timeout(struct mesh_process *process, uint64_t now_ms);

/**
 * Sends CLOSED for a comm that our NCCL never received; the caller frees it next. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_comm_refuse(const struct mesh_comm *comm);

enum mesh_cut_reason {
	MESH_CUT_SILENT, /* the peer did not answer in time */
	MESH_CUT_BROKEN, /* the comm has failed, or its peer's end has */
	MESH_CUT_STUCK,	 /* the peer answers, but nothing moved on the link for too long */
};

/**
 * Fences the peer on those paths of the comm that are not at rest: afterwards nothing of it is
 * written into this process's memory, and the provider has reported what it dropped. Other comms
 * with that process lose these links, and go on as after any loss. No lock held; on verbs it waits,
 * for 2.5 s at most.
 */
void mesh_comm_cut_off(struct mesh_comm *comm, enum mesh_cut_reason reason);

/**
 * True if the path needs no fence: a sender has nothing in flight there; at a receiver it was
 * fenced, or the last relay has reported that it writes nothing more.
 */
MESH_HOLDS(process)
MESH_HOLDS(comm)
bool mesh_path_is_at_rest(const struct mesh_path *path);

/**
 * The comm ends, and its paths through relays with it, without a fence, which would cut the link to
 * the relay: what a sender has in flight ends in the relay's memory, and a receiver asks the last
 * relay to write nothing more. When that is done, mesh_path_is_at_rest() holds for these paths.
 * process->lock held; takes domain->lock.
 *
 * Returns false if the comm has no such path whose relay may answer.
 */
MESH_HOLDS(process)
bool mesh_comm_circuits_leave(struct mesh_comm *comm);

#endif
