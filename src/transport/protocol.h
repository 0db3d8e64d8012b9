/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol.h - the two halves of the data protocol as comm.c plugs them in: send.c and receive.c.
 * docs/protocol/data.md describes how they work together.
 */
#ifndef MESH_TRANSPORT_PROTOCOL_H
#define MESH_TRANSPORT_PROTOCOL_H

#include "transport/comm.h"

/** What arrives for a sending comm: GRANT, POSTED. domain->lock held. */
void mesh_send_message(struct mesh_sink *sink, const struct mesh_message_header *header,
		       const void *payload);

/** What arrives for a receiving comm: DATA, WANT, SIZE. domain->lock held. */
void mesh_receive_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			  const void *payload);

/** A segment has been written into a receive. domain->lock held. */
void mesh_receive_written(struct mesh_sink *sink, const struct mesh_immediate *immediate);

/** A request's message has left its buffer; the buffer's owner is the request. */
void mesh_send_message_sent(struct mesh_buffer *buffer, int error);

/** Prepares the segments of a new sending comm. */
void mesh_send_init(struct mesh_comm *comm);

/** Try again from a poll what could not be posted. domain->lock held. */
void mesh_send_resume(struct mesh_waiter *waiter);
void mesh_receive_resume(struct mesh_waiter *waiter);

/** Messages that are fully on their way, from the first on. comm->lock held. */
uint32_t mesh_send_count(const struct mesh_comm *comm);

/** True if message @seq has left this process for good. comm->lock held. */
bool mesh_send_is_complete(struct mesh_comm *comm, uint32_t seq);

/**
 * Sends all grants once more that may not have arrived: the sender has waited with message @seq
 * for long. They also tell how many receives are posted. comm->lock held.
 */
void mesh_receive_tell_again(struct mesh_comm *comm, uint32_t seq);

/** Asks, answers, and learns whether a message is lost (stall.c). node->lock held. */
void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms);
void mesh_stall_asked(struct mesh_comm *comm, uint32_t seq);
void mesh_stall_answered(struct mesh_comm *comm, uint32_t seq);

/** True if the first @count messages have all arrived. comm->lock held. */
bool mesh_receive_has_all(struct mesh_comm *comm, uint32_t count);

/** True if the sender has sent something that no receive was posted for. comm->lock held. */
bool mesh_receive_has_early(const struct mesh_comm *comm);

/** True if the peer may still write into the memory of a posted receive. comm->lock held. */
bool mesh_receive_is_granted(const struct mesh_comm *comm);

/** True for a and b if a comes before b: sequence numbers wrap. */
static inline bool mesh_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
