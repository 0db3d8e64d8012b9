/* SPDX-License-Identifier: Apache-2.0 */
/* close.h - brings a comm to rest before NCCL has its memory back. */
#ifndef MESH_TRANSPORT_CLOSE_H
#define MESH_TRANSPORT_CLOSE_H

#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"

/** Handle CLOSE and CLOSED from the comm's peer. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_close_came(struct mesh_comm *comm);
MESH_HOLDS(process)
void mesh_comm_closed_came(struct mesh_comm *comm, const struct mesh_frame_closed *frame);

/**
 * Answers a closing peer once all that it sent has arrived and nothing of ours is in flight.
 * process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_tick(struct mesh_comm *comm);

/**
 * Adds the comm to those whose peer waits for our end, or removes it. Idempotent. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_comm_asked_set(struct mesh_comm *comm, bool asked);

/**
 * mesh_comm_tick() of each comm whose peer waits for our end, and the end of waiting for what a
 * peer has in flight on a comm that is freed. process->lock held.
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

/**
 * Brings the comm to rest: it starts nothing new, the peer has confirmed that, and no operation in
 * flight touches the memory of its requests. Waits a bounded time; a peer that does not answer is
 * fenced. No lock held.
 */
void mesh_comm_quiesce(struct mesh_comm *comm);

#endif
