/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - sends messages to the peer over the path that delivers them first, and announces
 * writes: docs/protocol/data.md has the rule, docs/protocol/mappings.md what was measured.
 */
#ifndef MESH_TRANSPORT_MESSAGE_H
#define MESH_TRANSPORT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "fabric/buffer.h"
#include "fabric/remote.h"
#include "transport/comm.h"

/** A message as it goes out. */
struct mesh_outgoing {
	struct mesh_message_header header; /* but for comm and token, which the path fills in */
	const void *payload;		   /* header.length bytes */
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
 * Sends the small message of @request, if it can leave at once and there is no choice of paths: the
 * short form of mesh_comm_message_send(), without an unfinished operation. comm->lock held.
 *
 * Returns false if it has not been sent.
 */
MESH_HOLDS(comm)
bool mesh_comm_data_inject(struct mesh_comm *comm, const struct mesh_request *request);

/** An operation on the path, a message or a write, is over. @error: negative errno, or 0 */
MESH_HOLDS(comm)
void mesh_path_operation_end(struct mesh_path *path, int error);

/* What a write has put into the receiver's memory. */
struct mesh_announcement {
	uint32_t segment, num_segments;
	bool full;     /* the message fills its grant */
	uint64_t flag; /* of the lines, which the write has left out (place.h); 0: of none */
};

/**
 * Adds to @write, whose segment goes over @path, what announces it: the immediate if that says all,
 * else the message behind it. A write that is not posted leaves the message with the caller.
 * comm->lock held.
 *
 * Returns false if there is no buffer for the message: the next poll calls comm's resume function.
 */
MESH_HOLDS(comm)
bool mesh_announce(struct mesh_request *request, struct mesh_path *path,
		   const struct mesh_announcement *announcement, struct mesh_write *write);

/**
 * Informs the receiver that the message of @request is larger than its receive, so that nothing is
 * written. comm->lock held. Returns as mesh_comm_message_send() does.
 */
MESH_HOLDS(comm)
bool mesh_announce_too_large(struct mesh_request *request);

#endif
