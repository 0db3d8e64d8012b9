/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - checks the messages that come from other nodes: no field is trusted. */
#include <errno.h>
#include <string.h>

#include "wire/message.h"

static int acked_check(const struct mesh_message_header *header)
{
	return !header->acked || header->acked == MESH_ACKED(header->acked) ? 0 : -EPROTO;
}

static int grants_check(const struct mesh_message_header *header)
{
	if (acked_check(header) || !header->count || header->count > MESH_GRANTS_PER_MESSAGE ||
	    !header->paths || header->paths > MESH_PATHS_MAX)
		return -EPROTO;
	return header->length == header->count * mesh_grant_size(header->paths) ? 0 : -EPROTO;
}

static int written_check(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_written written;

	if (header->length != sizeof(written))
		return -EPROTO;
	memcpy(&written, payload, sizeof(written));
	if (!written.num_segments)
		return written.segment ? -EPROTO : 0;
	if (written.num_segments > MESH_SEGMENTS_MAX || written.segment >= written.num_segments)
		return -EPROTO;
	return 0;
}

static int relayed_check(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_relayed relayed;

	if (header->length != sizeof(relayed))
		return -EPROTO;
	memcpy(&relayed, payload, sizeof(relayed));
	if (!relayed.num_segments || relayed.num_segments > MESH_SEGMENTS_MAX ||
	    relayed.segment >= relayed.num_segments)
		return -EPROTO;
	if (!relayed.length || relayed.granule >= MESH_GRANULES)
		return -EPROTO;
	return relayed.full <= 1 && relayed.more <= 1 && relayed.wants <= 1 ? 0 : -EPROTO;
}

static int arrived_check(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_arrived arrived;

	if (header->length != sizeof(arrived))
		return -EPROTO;
	memcpy(&arrived, payload, sizeof(arrived));
	return arrived.limit && arrived.limit <= MESH_GRANULES ? 0 : -EPROTO;
}

static int message_payload_check(const struct mesh_message_header *header, const uint8_t *payload)
{
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_GRANT:
		return grants_check(header);
	case MESH_MESSAGE_WRITTEN:
		return written_check(header, payload);
	case MESH_MESSAGE_RELAYED:
		return relayed_check(header, payload);
	case MESH_MESSAGE_ARRIVED:
		return arrived_check(header, payload);
	case MESH_MESSAGE_DATA:
		return 0;
	case MESH_MESSAGE_POSTED:
		return acked_check(header) || header->length ? -EPROTO : 0;
	case MESH_MESSAGE_GREET:
	case MESH_MESSAGE_GREET_REPLY:
	case MESH_MESSAGE_WANT:
		return header->length == 0 ? 0 : -EPROTO;
	}
	return -EPROTO;
}

const struct mesh_message_header *mesh_message_check(const void *bytes, size_t size)
{
	const struct mesh_message_header *header = bytes;

	if (size < sizeof(*header) || header->length != size - sizeof(*header))
		return NULL;
	if (header->type == MESH_MESSAGE_DATA) /* most are */
		return header;
	return message_payload_check(header, (const uint8_t *)(header + 1)) ? NULL : header;
}
