/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - how the receiver learns of a write: from its immediate, or the message behind. */
#include "transport/announce.h"
#include "transport/message.h"
#include "wire/message.h"

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

/* Address, key, length and granule are added when the write is posted (relay/hop.h). */
MESH_HOLDS(comm)
__attribute__((noinline)) static struct mesh_buffer *
relayed_make(struct mesh_request *request, struct mesh_path *path,
	     const struct mesh_announcement *announcement,
	     void (*sent)(struct mesh_buffer *buffer, int error))
{
	const struct mesh_message_relayed payload = {
		.segment = announcement->segment,
		.num_segments = announcement->num_segments,
		.full = announcement->full,
		.flag = announcement->flag,
	};
	struct mesh_outgoing message =
		message_of(request, MESH_MESSAGE_RELAYED, &payload, sizeof(payload));

	message.sent = sent;
	return mesh_message_prepare(path, &message, request);
}

/* Prepares the message behind a write; NULL if there is no buffer. */
MESH_HOLDS(comm)
__attribute__((noinline)) static struct mesh_buffer *
written_make(struct mesh_request *request, struct mesh_path *path,
	     const struct mesh_announcement *announcement,
	     void (*sent)(struct mesh_buffer *buffer, int error))
{
	const struct mesh_message_written payload = {
		.segment = announcement->segment,
		.num_segments = announcement->num_segments,
		.flag = announcement->flag,
	};
	struct mesh_outgoing message =
		message_of(request, MESH_MESSAGE_WRITTEN, &payload, sizeof(payload));

	message.sent = sent;
	return mesh_message_prepare(path, &message, request);
}

bool mesh_announce(struct mesh_request *request, struct mesh_path *path,
		   const struct mesh_announcement *announcement,
		   void (*sent)(struct mesh_buffer *buffer, int error), struct mesh_write *write)
{
	if (!announcement->flag &&
	    mesh_immediate_suffices(path->immediate_bits, announcement->full)) {
		write->immediate = immediate_make(request, path, announcement);
		return true;
	}
	write->behind = path->relayed && mesh_path_has_relay(path)
				? relayed_make(request, path, announcement, sent)
				: written_make(request, path, announcement, sent);
	return write->behind;
}

bool mesh_announce_too_large(struct mesh_request *request)
{
	const struct mesh_message_written payload = {0};
	const struct mesh_outgoing message =
		message_of(request, MESH_MESSAGE_WRITTEN, &payload, sizeof(payload));

	return mesh_comm_message_send(request->comm, &message, NULL);
}
