/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grants.h - which grants a receiving comm sends, and when, and what it says of complete messages;
 * and what the sending comm learns of that: docs/protocol/data.md.
 */
#ifndef MESH_TRANSPORT_GRANTS_H
#define MESH_TRANSPORT_GRANTS_H

#include "base/lock.h"
#include "fabric/sink.h"
#include "transport/comm.h"
#include "wire/message.h"

/**
 * Sends the grants that are due, and POSTED. What finds no free buffer is sent from a later poll.
 * comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update(struct mesh_comm *comm);

/**
 * The same after a receive was posted. A sender that holds grants does not wait for this one: the
 * next poll sends it, after what NCCL sends before that, which is usually the answer to the last
 * message. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update_soon(struct mesh_comm *comm);

/** A message is complete that came whole over @path: its sender may wait for our word. */
MESH_HOLDS(comm)
void mesh_ack_want(const struct mesh_request *request, const struct mesh_path *path);

/** True if a sender may wait for our word. comm->lock held. */
MESH_HOLDS(comm)
static inline bool mesh_ack_is_wanted(const struct mesh_comm *comm)
{
	return comm->receive.acked != comm->receive.ack_wanted;
}

/** After a receive is complete: says so in a moment, if no GRANT does before. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_update(struct mesh_comm *comm);

/** Called from a poll: says what no GRANT has said. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_resume(struct mesh_comm *comm);

/** Says it at once, and again. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_send(struct mesh_comm *comm);

/** What arrives for a sending comm: GRANT, POSTED. domain->lock held. */
void mesh_credit_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			 const void *payload);

#endif
