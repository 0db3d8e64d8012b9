/* SPDX-License-Identifier: Apache-2.0 */
/*
 * announce.h - how the receiver learns of a write: from its immediate, or from the message behind.
 *
 * docs/protocol/data.md has the rule, docs/protocol/mappings.md what was measured.
 */
#ifndef MESH_TRANSPORT_ANNOUNCE_H
#define MESH_TRANSPORT_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "fabric/remote.h"
#include "transport/comm.h"

/* What a write has put into the receiver's memory. */
struct mesh_announcement {
	uint32_t segment, num_segments;
	bool full;     /* the message fills its grant */
	uint64_t flag; /* of the lines, which the write has left out (flags.h); 0: of none */
};

/**
 * Adds to @write, whose segment goes over @path, what announces it: the immediate if that says all,
 * else the message behind it. Such a message is about @request, and @sent is its callback. A write
 * that is not posted leaves the message with the caller. comm->lock held.
 *
 * Returns false if there is no buffer for the message: the next poll calls comm's resume function.
 */
MESH_HOLDS(comm)
bool mesh_announce(struct mesh_request *request, struct mesh_path *path,
		   const struct mesh_announcement *announcement,
		   void (*sent)(struct mesh_buffer *buffer, int error), struct mesh_write *write);

/**
 * Informs the receiver that the message of @request is larger than its receive, so that nothing is
 * written. comm->lock held. Returns as mesh_comm_message_send() does.
 */
MESH_HOLDS(comm)
bool mesh_announce_too_large(struct mesh_request *request);

#endif
