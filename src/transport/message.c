/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - sends messages to the peer over the path that delivers them first. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "control/process.h"
#include "fabric/buffer.h"
#include "fabric/remote.h"
#include "transport/data.h"
#include "wire/message.h"

void mesh_path_operation_end(struct mesh_path *path, int error)
{
	struct mesh_comm *comm = path->comm;

	mesh_comm_assert_locked(comm);
	comm->unfinished--;
	path->unfinished--;
	if (error) {
		mesh_count(&path->counters->errors, 1);
		mesh_path_suspect(path, error);
	}
	if (path->state != MESH_PATH_UP && !path->unfinished)
		mesh_comm_recover_soon(comm); /* RESUME may be due */
}

/*
 * Chooses among several paths for a message that is not a segment: it is short, and the peer waits
 * for it.
 */
static struct mesh_path *message_path_choose(struct mesh_comm *comm, size_t bytes)
{
	int i = mesh_pace_choose_for_message(comm->paces, comm->num_up, bytes, comm->rotation++,
					     mesh_clock_ns());

	return comm->up[i];
}

/* Adds what only the path knows. */
static inline void header_address(struct mesh_message_header *header, const struct mesh_path *path)
{
	header->comm = path->remote_id;
	header->token = path->remote_token;
}

/* Header and payload as one piece, which the provider copies. */
struct injection {
	struct mesh_message_header header;
	uint8_t payload[MESH_PATH_INJECT_MAX - sizeof(struct mesh_message_header)];
};

/* Sends a message that is short enough; returns false if it needs a buffer. */
static inline bool message_inject(const struct mesh_path *path, const struct mesh_outgoing *message)
{
	size_t size = sizeof(message->header) + message->header.length;
	struct injection bytes;

	if (size > path->inject_max)
		return false;
	bytes.header = message->header;
	header_address(&bytes.header, path);
	if (message->header.length)
		memcpy(bytes.payload, message->payload, message->header.length);
	return !mesh_remote_inject(path->domain, path->remote, &bytes, size);
}

/* Counts NCCL's own bytes only, not the protocol's. */
MESH_HOLDS(comm)
static inline void data_count(const struct mesh_path *path, size_t size)
{
	struct mesh_counters *counters = path->counters;

	mesh_count(&counters->messages, 1);
	mesh_count(&counters->small, 1);
	mesh_count(&counters->bytes, size);
}

/*
 * Prepares a message for @path in a buffer, which the caller sends with mesh_remote_send() or gives
 * back, and counts as an operation of @request. Returns NULL if there is no buffer now: the next
 * poll calls comm's resume function.
 */
MESH_HOLDS(comm)
static struct mesh_buffer *message_prepare(struct mesh_path *path,
					   const struct mesh_outgoing *message,
					   struct mesh_request *request)
{
	struct mesh_message_header *header;
	struct mesh_buffer *buffer;

	mesh_comm_assert_locked(path->comm);
	buffer = mesh_remote_buffer_get(path->domain, path->remote);
	if (!buffer) {
		mesh_count(&path->counters->busy, 1);
		mesh_domain_wait(path->domain, &path->waiter);
		return NULL;
	}
	header = (struct mesh_message_header *)buffer->bytes;
	*header = message->header;
	header_address(header, path);
	if (message->header.length)
		mesh_bytes_copy(header + 1, message->payload, message->header.length);
	buffer->size = sizeof(*header) + message->header.length;
	buffer->owner = path;
	buffer->about = request;
	buffer->sent = path->comm->message_sent;
	return buffer;
}

MESH_HOLDS(comm)
__attribute__((noinline)) static bool buffer_send(struct mesh_path *path,
						  const struct mesh_outgoing *message,
						  struct mesh_request *request)
{
	struct mesh_buffer *buffer = message_prepare(path, message, request);

	if (!buffer)
		return false;
	if (request)
		request->send.unfinished++;
	path->comm->unfinished++;
	path->unfinished++;
	mesh_remote_send(buffer);
	return true;
}

bool mesh_comm_message_send(struct mesh_comm *comm, const struct mesh_outgoing *message,
			    struct mesh_request *request)
{
	struct mesh_path *path = comm->up[0];

	mesh_comm_assert_locked(comm);
	if (!comm->num_up)
		return false;
	if (comm->num_up > 1)
		path = message_path_choose(comm, message->header.length);
	if (!message_inject(path, message) && !buffer_send(path, message, request))
		return false;
	if (message->header.type == MESH_MESSAGE_DATA)
		data_count(path, message->header.length);
	return true;
}

bool mesh_comm_data_inject(struct mesh_comm *comm, const struct mesh_request *request)
{
	size_t size = sizeof(struct mesh_message_header) + request->size;
	const struct mesh_path *path = comm->up[0];
	struct injection bytes;

	mesh_comm_assert_locked(comm);
	if (comm->num_up != 1 || size > path->inject_max)
		return false;
	bytes.header = (struct mesh_message_header){
		.type = MESH_MESSAGE_DATA,
		.length = (uint32_t)request->size,
		.comm = path->remote_id,
		.token = path->remote_token,
		.seq = request->seq,
	};
	if (request->size)
		memcpy(bytes.payload, request->data, request->size);
	if (mesh_remote_inject(path->domain, path->remote, &bytes, size))
		return false;
	data_count(path, request->size);
	return true;
}

/* ---- how the receiver learns of a write ------------------------------------------------------ */

static uint64_t immediate_make(const struct mesh_request *request, const struct mesh_path *path,
			       const struct mesh_announcement *announcement)
{
	const struct mesh_immediate immediate = {
		.comm = path->remote_id & (MESH_COMM_IDS - 1),
		.seq = request->seq,
		.segment = announcement->segment,
		.last = announcement->segment + 1 == announcement->num_segments,
		.size = path->immediate_bits >= 64 ? (uint32_t)request->size : 0,
	};

	return mesh_immediate_encode(&immediate);
}

/* A message of @length bytes about @request's write. */
static struct mesh_outgoing message_of(const struct mesh_request *request, uint8_t type,
				       const void *payload, uint32_t length)
{
	return (struct mesh_outgoing){
		.header.type = type,
		.header.length = length,
		.header.seq = request->seq,
		.header.size = (uint32_t)request->size,
		.payload = payload,
	};
}

/*
 * Prepares the message behind a write; NULL if there is no buffer. Address, key, length and granule
 * of RELAYED are added when the write is posted (relay/hop.h).
 */
MESH_HOLDS(comm)
__attribute__((noinline)) static struct mesh_buffer *
behind_make(struct mesh_request *request, struct mesh_path *path,
	    const struct mesh_announcement *announcement)
{
	const struct mesh_message_relayed relayed = {
		.segment = announcement->segment,
		.num_segments = announcement->num_segments,
		.full = announcement->full,
		.flag = announcement->flag,
	};
	const struct mesh_message_written written = {
		.segment = announcement->segment,
		.num_segments = announcement->num_segments,
		.flag = announcement->flag,
	};
	const struct mesh_outgoing message =
		mesh_path_is_relayed(path)
			? message_of(request, MESH_MESSAGE_RELAYED, &relayed, sizeof(relayed))
			: message_of(request, MESH_MESSAGE_WRITTEN, &written, sizeof(written));

	return message_prepare(path, &message, request);
}

bool mesh_announce(struct mesh_request *request, struct mesh_path *path,
		   const struct mesh_announcement *announcement, struct mesh_write *write)
{
	if (!announcement->flag &&
	    mesh_immediate_suffices(path->immediate_bits, announcement->full)) {
		write->immediate = immediate_make(request, path, announcement);
		return true;
	}
	write->behind = behind_make(request, path, announcement);
	return write->behind;
}

bool mesh_announce_too_large(struct mesh_request *request)
{
	const struct mesh_message_written payload = {0};
	const struct mesh_outgoing message =
		message_of(request, MESH_MESSAGE_WRITTEN, &payload, sizeof(payload));

	return mesh_comm_message_send(request->comm, &message, NULL);
}
