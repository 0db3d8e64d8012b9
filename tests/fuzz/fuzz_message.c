/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_message.c - foreign bytes as a message through libfabric, and its payload. */
#include <stdint.h>
#include <string.h>

#include "wire/message.h"

#include "fuzz_text.h"

/* Reads all that a receiver reads; ASan watches the end. */
static uint64_t payload_walk(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct mesh_message_written written;
	struct mesh_message_relayed relayed;
	struct mesh_message_arrived arrived;
	struct mesh_grant grant;
	size_t grant_size = mesh_grant_size(header->paths);
	uint64_t sum = 0;

	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_GRANT:
		fuzz_check(header->count && header->count <= MESH_GRANTS_PER_MESSAGE &&
			   header->paths && header->paths <= MESH_PATHS_MAX);
		for (uint32_t i = 0; i < header->count; i++) {
			memcpy(&grant, payload + i * grant_size, grant_size);
			sum += grant.size + grant.targets[header->paths - 1].key;
		}
		break;
	case MESH_MESSAGE_WRITTEN:
		memcpy(&written, payload, sizeof(written));
		fuzz_check(written.segment < MESH_SEGMENTS_MAX &&
			   (!written.num_segments || written.segment < written.num_segments));
		sum = written.segment;
		break;
	case MESH_MESSAGE_RELAYED:
		memcpy(&relayed, payload, sizeof(relayed));
		fuzz_check(relayed.length && relayed.granule < MESH_GRANULES &&
			   relayed.num_segments <= MESH_SEGMENTS_MAX &&
			   relayed.segment < relayed.num_segments);
		sum = relayed.address + relayed.key;
		break;
	case MESH_MESSAGE_ARRIVED:
		memcpy(&arrived, payload, sizeof(arrived));
		sum = arrived.granules;
		break;
	case MESH_MESSAGE_DATA:
		for (uint32_t i = 0; i < header->length; i++)
			sum += payload[i];
		break;
	default:
		fuzz_check(!header->length);
	}
	return sum;
}

static void message_check(const uint8_t *bytes, size_t size)
{
	const struct mesh_message_header *header = mesh_message_check(bytes, size);
	struct mesh_immediate immediate;
	uint64_t sum;

	if (!header)
		return;
	fuzz_check((const uint8_t *)header == bytes && sizeof(*header) + header->length == size);
	sum = payload_walk(header, bytes + sizeof(*header));
	__asm__ volatile("" : : "r"(sum)); /* the compiler must not skip the walk */
	immediate = mesh_immediate_decode(header->seq);
	fuzz_check(mesh_immediate_encode(&immediate) == (header->seq & ~1u));
}

static void right(uint8_t *bytes, size_t size)
{
	struct mesh_message_header header;

	memcpy(&header, bytes, sizeof(header));
	header.length = (uint32_t)(size - sizeof(header));
	if (header.type == MESH_MESSAGE_GRANT)
		header.count = (uint8_t)(header.length / mesh_grant_size(header.paths));
	memcpy(bytes, &header, sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct mesh_message_header), right, message_check);
	return 0;
}
