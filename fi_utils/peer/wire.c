/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - checks the frames between a checking node and a serving one. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "peer/wire.h"

/* Bytes behind the header of each type, at least and at most. */
static const struct {
	size_t least, most;
} payloads[MESH_CHECK_TYPES] = {
#define FIXED(type)                                                                                \
	{                                                                                          \
		sizeof(type), sizeof(type)                                                         \
	}
	[MESH_CHECK_HELLO] = {offsetof(struct mesh_check_hello, nics),
			      sizeof(struct mesh_check_hello)},
	[MESH_CHECK_UDP_OPEN... MESH_CHECK_UDP_GOT] = FIXED(struct mesh_check_udp),
	[MESH_CHECK_ERROR] = FIXED(struct mesh_check_error),
	[MESH_CHECK_MEASURE_BEGIN... MESH_CHECK_MEASURE_END] = FIXED(struct mesh_check_measure),
#undef FIXED
};

void mesh_check_header_fill(struct mesh_check_header *header, enum mesh_check_type type,
			    uint32_t number, size_t length)
{
	*header = (struct mesh_check_header){
		.magic = MESH_CHECK_MAGIC,
		.version = MESH_CHECK_VERSION,
		.type = (uint8_t)type,
		.length = (uint32_t)length,
		.number = number,
	};
}

size_t mesh_check_finish(struct mesh_check_frame *frame, enum mesh_check_type type, uint32_t number)
{
	size_t length = payloads[type].least;

	if (type == MESH_CHECK_HELLO)
		length += frame->hello.num_nics * sizeof(frame->hello.nics[0]);
	mesh_check_header_fill(&frame->header, type, number, length);
	return sizeof(frame->header) + length;
}

/* ---- reading --------------------------------------------------------------------------- */

static int header_check(const struct mesh_check_header *header)
{
	if (header->magic != MESH_CHECK_MAGIC)
		return -EPROTO;
	if (header->version != MESH_CHECK_VERSION && header->type != MESH_CHECK_ERROR)
		return -EPROTONOSUPPORT;
	return header->type < MESH_CHECK_TYPES && payloads[header->type].most &&
			       header->length >= payloads[header->type].least &&
			       header->length <= payloads[header->type].most
		       ? 0
		       : -EPROTO;
}

/* A text must end; what cannot be printed of it becomes a '?'. */
static bool text_take(char *text, size_t size)
{
	if (!mesh_text_ends(text, size))
		return false;
	mesh_text_clean(text);
	return true;
}

static bool nic_take(struct mesh_check_nic *nic)
{
	if (!text_take(nic->netdev, sizeof(nic->netdev)) || !*nic->netdev)
		return false;
	if (nic->provider > MESH_PROVIDER_ID_MAX || nic->carrier > 1)
		return false;
	return (nic->family == MESH_FAMILY_IPV4 && nic->prefix_len <= 32) ||
	       (nic->family == MESH_FAMILY_IPV6 && nic->prefix_len <= 128);
}

static int hello_take(struct mesh_check_hello *hello, size_t length)
{
	int i;

	if (hello->num_nics > MESH_NICS_MAX ||
	    length != offsetof(struct mesh_check_hello, nics) +
			      hello->num_nics * sizeof(hello->nics[0]))
		return -EPROTO;
	if (!text_take(hello->node, sizeof(hello->node)) ||
	    !text_take(hello->site, sizeof(hello->site)))
		return -EPROTO;
	for (i = 0; i < hello->num_nics; i++)
		if (!nic_take(&hello->nics[i]))
			return -EPROTO;
	return 0;
}

static int payload_take(struct mesh_check_frame *frame)
{
	switch (frame->header.type) {
	case MESH_CHECK_HELLO:
		return hello_take(&frame->hello, frame->header.length);
	case MESH_CHECK_MEASURE_RUN:
		return frame->measure.ms > MESH_CHECK_RUN_MS_MAX ? -EPROTO : 0;
	case MESH_CHECK_ERROR:
		return text_take(frame->error.text, sizeof(frame->error.text)) ? 0 : -EPROTO;
	default:
		return 0;
	}
}

int mesh_check_decode(const void *bytes, size_t size, struct mesh_check_frame *frame)
{
	struct mesh_check_frame decoded;
	const char *payload = (const char *)bytes + sizeof(decoded.header);
	int ret;

	if (size < sizeof(decoded.header))
		return 0;
	memset(&decoded, 0, sizeof(decoded));
	memcpy(&decoded.header, bytes, sizeof(decoded.header));
	ret = header_check(&decoded.header);
	if (ret)
		return ret;
	if (size - sizeof(decoded.header) < decoded.header.length)
		return 0;
	memcpy(&decoded.hello, payload, decoded.header.length);
	ret = payload_take(&decoded);
	if (ret)
		return ret;
	*frame = decoded;
	return (int)(sizeof(decoded.header) + decoded.header.length);
}

uint8_t mesh_check_version_of(const void *bytes, size_t size)
{
	struct mesh_check_header header;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	return header.magic == MESH_CHECK_MAGIC ? header.version : 0;
}

void mesh_check_nic_addr(const struct mesh_check_nic *nic, struct mesh_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = (enum mesh_family)nic->family;
	addr->prefix_len = nic->prefix_len;
	memcpy(addr->bytes, nic->addr, mesh_addr_size(addr->family));
}

int mesh_check_probe_decode(const void *bytes, size_t size, struct mesh_check_probe *probe)
{
	struct mesh_check_probe decoded;

	if (size < sizeof(decoded))
		return -EPROTO;
	memcpy(&decoded, bytes, sizeof(decoded));
	if (decoded.magic != MESH_CHECK_PROBE_MAGIC)
		return -EPROTO;
	*probe = decoded;
	return 0;
}
