/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - checks the messages that come from other nodes: no field is trusted. */
#include <string.h>

#include "wire/message.h"

static bool acked_fits(const struct mesh_message_header *header)
{
	return !header->acked || header->acked == MESH_ACKED(header->acked);
}

static bool grants_fit(const struct mesh_message_header *header)
{
	return acked_fits(header) && header->count && header->count <= MESH_GRANTS_PER_MESSAGE &&
	       header->paths && header->paths <= MESH_PATHS_MAX &&
	       header->length == header->count * mesh_grant_size(header->paths);
}

static bool written_fits(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_written written;

	if (header->length != sizeof(written))
		return false;
	memcpy(&written, payload, sizeof(written));
	if (!written.num_segments)
		return !written.segment;
	return written.num_segments <= MESH_SEGMENTS_MAX && written.segment < written.num_segments;
}

static bool relayed_fits(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_relayed relayed;

	if (header->length != sizeof(relayed))
		return false;
	memcpy(&relayed, payload, sizeof(relayed));
	return relayed.num_segments <= MESH_SEGMENTS_MAX &&
	       relayed.segment < relayed.num_segments && relayed.length &&
	       relayed.granule < MESH_GRANULES && relayed.full <= 1 && relayed.more <= 1 &&
	       !relayed.reserved;
}

static bool message_fits(const struct mesh_message_header *header)
{
	const uint8_t *payload = (const uint8_t *)(header + 1);

	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_GRANT:
		return grants_fit(header);
	case MESH_MESSAGE_WRITTEN:
		return written_fits(header, payload);
	case MESH_MESSAGE_RELAYED:
		return relayed_fits(header, payload);
	case MESH_MESSAGE_ARRIVED:
		return header->length == sizeof(struct mesh_message_arrived);
	case MESH_MESSAGE_DATA:
		return true;
	case MESH_MESSAGE_POSTED:
		return acked_fits(header) && !header->length;
	case MESH_MESSAGE_GREET:
	case MESH_MESSAGE_WANT:
		return !header->length;
	}
	return false;
}

const struct mesh_message_header *mesh_message_check(const void *bytes, size_t size)
{
	const struct mesh_message_header *header = bytes;

	if (size < sizeof(*header) || header->length != size - sizeof(*header))
		return NULL;
	if (header->type == MESH_MESSAGE_DATA) /* most are */
		return header;
	return message_fits(header) ? header : NULL;
}
