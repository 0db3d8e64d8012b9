/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - sends messages to the peer over the path that delivers them first. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/process.h"
#include "fabric/buffer.h"
#include "fabric/remote.h"
#include "transport/counters.h"
#include "transport/message.h"

/* Longer messages take a buffer, whatever the provider could inject (tcp: 128 bytes). */
#define INJECT_MAX 256

static void message_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_path *path = buffer->owner;
	struct mesh_comm *comm = path->comm;
	char why[128];

	mesh_comm_lock(comm);
	comm->unfinished--;
	if (error) {
		mesh_count(&path->counters->errors, 1);
		snprintf(why, sizeof(why), "a message could not be delivered: %s",
			 strerror(-error));
		mesh_comm_fail(comm, error, comm->closing, why);
	}
	mesh_comm_unlock(comm);
}

/* Chooses the path of a message that is not a segment: it is short, and the peer waits for it. */
static struct mesh_path *message_path_choose(struct mesh_comm *comm, size_t bytes, uint64_t now_ns)
{
	int i = 0;

	if (comm->num_paths > 1)
		i = mesh_pace_choose_for_message(comm->paces, comm->num_paths, bytes,
						 comm->rotation++, now_ns);
	return &comm->paths[i];
}

static struct mesh_message_header header_make(const struct mesh_path *path,
					      const struct mesh_outgoing *message)
{
	return (struct mesh_message_header){
		.type = (uint8_t)message->type,
		.count = message->count,
		.paths = message->paths,
		.length = (uint32_t)message->length,
		.comm = path->remote_id,
		.token = path->remote_token,
		.seq = message->seq,
		.size = message->size,
	};
}

/* The header and a short payload as one piece; returns false if it must go the long way. */
static bool message_inject(const struct mesh_path *path, const struct mesh_outgoing *message)
{
	uint8_t bytes[INJECT_MAX];
	struct mesh_message_header header;
	size_t size = sizeof(header) + message->length;

	if (size > sizeof(bytes) || size > path->inject_max)
		return false;
	header = header_make(path, message);
	memcpy(bytes, &header, sizeof(header));
	if (message->length)
		memcpy(bytes + sizeof(header), message->payload, message->length);
	return !mesh_path_inject(path, bytes, size);
}

/* Counts NCCL's own bytes only, not the protocol's. */
static void message_count(struct mesh_path *path, const struct mesh_outgoing *message)
{
	if (message->type != MESH_MESSAGE_DATA)
		return;
	mesh_count(&path->counters->messages, 1);
	mesh_count(&path->counters->small, 1);
	mesh_count(&path->counters->bytes, message->length);
}

struct mesh_buffer *mesh_message_prepare(struct mesh_path *path,
					 const struct mesh_outgoing *message,
					 struct mesh_request *request)
{
	const struct mesh_message_header header = header_make(path, message);
	struct mesh_buffer *buffer;

	mesh_comm_assert_locked(path->comm);
	buffer = mesh_path_buffer_get(path);
	if (!buffer) {
		mesh_count(&path->counters->busy, 1);
		mesh_path_poll_await(path);
		return NULL;
	}
	memcpy(buffer->bytes, &header, sizeof(header));
	if (message->length)
		memcpy(buffer->bytes + sizeof(header), message->payload, message->length);
	buffer->size = sizeof(header) + message->length;
	buffer->owner = path;
	buffer->about = request;
	buffer->sent = request ? message->sent : message_sent;
	return buffer;
}

bool mesh_comm_message_send(struct mesh_comm *comm, const struct mesh_outgoing *message,
			    struct mesh_request *request)
{
	uint64_t now_ns = comm->num_paths > 1 ? mesh_clock_ns() : 0;
	struct mesh_path *path = message_path_choose(comm, message->length, now_ns);
	struct mesh_buffer *buffer;

	mesh_comm_assert_locked(comm);
	if (message_inject(path, message)) {
		message_count(path, message);
		return true;
	}
	buffer = mesh_message_prepare(path, message, request);
	if (!buffer)
		return false;
	/* Completions of verbs are the peer's NIC's; tcp's say nothing of the link. */
	buffer->posted_ns = path->is_acknowledged ? now_ns : 0;
	if (request)
		request->send.unfinished++;
	comm->unfinished++;
	mesh_remote_send(buffer);
	message_count(path, message);
	return true;
}
