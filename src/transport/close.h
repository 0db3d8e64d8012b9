/* SPDX-License-Identifier: Apache-2.0 */
/* close.h - brings a comm to rest before NCCL has its memory back. */
#ifndef MESH_TRANSPORT_CLOSE_H
#define MESH_TRANSPORT_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Brings the comm to rest: it starts nothing new, the peer has confirmed that, and no operation in
 * flight touches the memory of its requests. Waits a bounded time; a peer that does not answer is
 * fenced. No lock held.
 */
void mesh_comm_quiesce(struct mesh_comm *comm);

/**
 * The same for a comm that is freed next, but does not wait for the answer to our CLOSED.
 *
 * Returns true if that answer is awaited. Then mesh_comm_close_is_over() decides when the comm can
 * be freed. No lock held.
 */
bool mesh_comm_close_begin(struct mesh_comm *comm);

/** Waits a bounded time for that answer, as a sender. No lock held. */
void mesh_comm_answer_await(struct mesh_comm *comm);

/**
 * True if the peer's kernel or NIC has all that was sent on the comm: it arrives, whatever happens
 * to this process. No lock held.
 */
bool mesh_comm_is_delivered(struct mesh_comm *comm);

/**
 * True if a receiver may end its process, although the sender has not answered: the sender's kernel
 * has its CLOSED, and all that the provider has sent on every path, such as acknowledgements of
 * writes. process->lock held.
 *
 * @since_ms: when CLOSED was sent last
 */
MESH_HOLDS(process)
bool mesh_comm_closed_is_acknowledged(struct mesh_comm *comm, uint64_t since_ms, uint64_t now_ms);

/**
 * True if the peer has answered the end of a comm, is lost, or, after one WARN for all of its
 * comms, has not answered in time. process->lock held.
 *
 * @since_ms: when it was to answer
 */
MESH_HOLDS(process)
bool mesh_comm_close_is_over(struct mesh_comm *comm, uint64_t since_ms, uint64_t now_ms);

/** Between two turns of a loop that waits. @turn: counts them from 0 */
void mesh_close_pause(int turn);

/** The owner of comms is freed: another one at its address does not abort. No lock held. */
void mesh_abort_forget(struct mesh_process *process, const void *owner);

#endif
