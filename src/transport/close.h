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
void mesh_comm_closed_came(struct mesh_comm *comm, const struct mesh_frame_comm *frame);

/**
 * Answers a closing peer once all that it sent has arrived and nothing of ours is in flight.
 * process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_tick(struct mesh_comm *comm);

/**
 * The time until the next mesh_comm_tick(), in milliseconds: 0 while a closing peer waits for
 * operations in flight, -1 if there is nothing to wait for. process->lock held.
 */
int mesh_comm_timeout(struct mesh_comm *comm, uint64_t now_ms);

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
