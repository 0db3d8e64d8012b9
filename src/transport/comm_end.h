/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_end.h - the states of a comm's two ends, from open to closed, and the engine's part of
 * closing: it answers peers that close.
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

#endif
