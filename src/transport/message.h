/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - sends messages to the peer over the path that delivers them first. */
#ifndef MESH_TRANSPORT_MESSAGE_H
#define MESH_TRANSPORT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "fabric/buffer.h"
#include "transport/comm.h"

/** A message as it goes out. */
struct mesh_outgoing {
	struct mesh_message_header header; /* but for comm and token, which the path fills in */
	const void *payload;		   /* header.length bytes */
	/* With a request: called when the message has left its buffer, which is owned by the
	 * path and about the request. */
	void (*sent)(struct mesh_buffer *buffer, int error);
};

/**
 * Sends a message to the peer. Short ones leave at once; others take a buffer, and @request, which
 * may be NULL, has one more unfinished operation until they are out. comm->lock held.
 *
 * Returns false if there is no buffer now: the next poll calls comm's resume function. Also while
 * no path is up; then the function that brings one up calls it.
 */
MESH_HOLDS(comm)
bool mesh_comm_message_send(struct mesh_comm *comm, const struct mesh_outgoing *message,
			    struct mesh_request *request);

/**
 * Prepares a message for @path in a buffer, which the caller sends with mesh_remote_send() or gives
 * back. The caller counts it as an operation of @request. comm->lock held.
 *
 * Returns NULL if there is no buffer now: the next poll calls comm's resume function.
 */
MESH_HOLDS(comm)
struct mesh_buffer *mesh_message_prepare(struct mesh_path *path,
					 const struct mesh_outgoing *message,
					 struct mesh_request *request);

/**
 * Sends the small message of @request, if it can leave at once and there is no choice of paths: the
 * short form of mesh_comm_message_send(), without an unfinished operation. comm->lock held.
 *
 * Returns false if it has not been sent.
 */
MESH_HOLDS(comm)
bool mesh_comm_data_inject(struct mesh_comm *comm, const struct mesh_request *request);

#endif
