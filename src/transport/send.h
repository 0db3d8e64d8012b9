/* SPDX-License-Identifier: Apache-2.0 */
/* send.h - the sending half of the data protocol: docs/protocol/data.md. */
#ifndef MESH_TRANSPORT_SEND_H
#define MESH_TRANSPORT_SEND_H

#include "transport/comm.h"

/**
 * Starts to send @size bytes. *request is NULL if nothing could be started: call again later. It is
 * undefined after an error.
 *
 * @registration: covers the data; may be NULL if @size is 0
 *
 * Returns 0; -EINVAL for a receive comm, a message over MESH_MESSAGE_MAX or outside its
 * registration. On a comm that has failed a request is started nevertheless, and fails in
 * mesh_request_test(), as in NCCL's own transports; the comm's error (negative errno) only if it is
 * closing, or has no request left.
 */
int mesh_comm_send(struct mesh_comm *comm, const void *data, size_t size,
		   struct mesh_registration *registration, struct mesh_request **request);

/** The message in the buffer, of either end, and perhaps about a request, is out. */
void mesh_message_sent(struct mesh_buffer *buffer, int error);

/** Called from a poll: posts what found no room before. domain->lock held. */
void mesh_send_resume(struct mesh_waiter *waiter);

/**
 * The comm sends over @path from now on, whose writes a message may announce: such messages can be
 * sent again. process->lock held; takes comm->lock.
 */
MESH_HOLDS(process)
void mesh_send_announces(const struct mesh_path *path);

/**
 * Posts what can be posted of each request. A large message that waits for its grant does not delay
 * the messages after it: each message carries its sequence number. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_send_push(struct mesh_comm *comm);

/** The number of messages that are fully posted, counted from the first. comm->lock held. */
uint32_t mesh_send_count(const struct mesh_comm *comm);

/** True if message @seq waits for a grant or credit of the receiver. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_send_awaits_receiver(struct mesh_comm *comm, uint32_t seq);

/** True if message @seq is complete at this end. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_send_is_complete(struct mesh_comm *comm, uint32_t seq);

#endif
