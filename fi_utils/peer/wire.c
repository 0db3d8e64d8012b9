/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - checks the frames between a checking node and a serving one. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "peer/wire.h"

size_t mesh_check_payload_size(enum mesh_check_type type)
{
	switch (type) {
	case MESH_CHECK_HELLO:
		return offsetof(struct mesh_check_hello, nics);
	case MESH_CHECK_FACING:
		return offsetof(struct mesh_check_facing, cables);
	case MESH_CHECK_UDP_OPEN:
	case MESH_CHECK_UDP_READY:
	case MESH_CHECK_UDP_SEND:
	case MESH_CHECK_UDP_SENT:
	case MESH_CHECK_UDP_GOT:
		return sizeof(struct mesh_check_udp);
	case MESH_CHECK_BULK_ASK:
	case MESH_CHECK_BULK_END:
		return sizeof(struct mesh_check_bulk);
	case MESH_CHECK_FABRIC_OPEN:
	case MESH_CHECK_FABRIC_READY:
	case MESH_CHECK_FABRIC_RUN:
	case MESH_CHECK_FABRIC_RAN:
	case MESH_CHECK_FABRIC_CLOSE:
		return sizeof(struct mesh_check_fabric);
	case MESH_CHECK_RELAYED_BEGIN:
	case MESH_CHECK_RELAYED_READY:
	case MESH_CHECK_RELAYED_MEET:
	case MESH_CHECK_RELAYED_MET:
	case MESH_CHECK_RELAYED_RUN:
	case MESH_CHECK_RELAYED_RAN:
	case MESH_CHECK_RELAYED_END:
		return sizeof(struct mesh_check_relayed);
	case MESH_CHECK_ERROR:
		return sizeof(struct mesh_check_error);
	case MESH_CHECK_ECHO:
	case MESH_CHECK_BULK:
	case MESH_CHECK_TYPES:
		break;
	}
	return 0;
}

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
	size_t length = mesh_check_payload_size(type);

	if (type == MESH_CHECK_HELLO)
		length += frame->hello.num_nics * sizeof(frame->hello.nics[0]);
	if (type == MESH_CHECK_FACING)
		length += frame->facing.num_cables * sizeof(frame->facing.cables[0]);
	mesh_check_header_fill(&frame->header, type, number, length);
	return sizeof(frame->header) + length;
}

/* ---- reading --------------------------------------------------------------------------- */

static int header_check(const struct mesh_check_header *header)
{
	size_t least = mesh_check_payload_size((enum mesh_check_type)header->type), most = least;

	if (header->magic != MESH_CHECK_MAGIC)
		return -EPROTO;
	if (header->version != MESH_CHECK_VERSION && header->type != MESH_CHECK_ERROR)
		return -EPROTONOSUPPORT;
	switch (header->type) {
	case MESH_CHECK_HELLO:
		most = sizeof(struct mesh_check_hello);
		break;
	case MESH_CHECK_FACING:
		most = sizeof(struct mesh_check_facing);
		break;
	case MESH_CHECK_ECHO:
		most = MESH_CHECK_ECHO_MAX;
		break;
	case MESH_CHECK_BULK:
		most = MESH_CHECK_PAYLOAD_MAX;
		break;
	default:
		if (!least)
			return -EPROTO;
		break;
	}
	return header->length < least || header->length > most ? -EPROTO : 0;
}

static bool nic_is_sound(const struct mesh_check_nic *nic)
{
	if (!mesh_text_ends(nic->netdev, sizeof(nic->netdev)) || !*nic->netdev)
		return false;
	if (nic->provider > MESH_PROVIDER_ID_MAX || nic->carrier > 1)
		return false;
	return (nic->family == MESH_FAMILY_IPV4 && nic->prefix_len <= 32) ||
	       (nic->family == MESH_FAMILY_IPV6 && nic->prefix_len <= 128);
}

static int hello_check(const struct mesh_check_hello *hello, size_t length)
{
	int i;

	if (hello->num_nics > MESH_NICS_MAX ||
	    length != offsetof(struct mesh_check_hello, nics) +
			      hello->num_nics * sizeof(hello->nics[0]))
		return -EPROTO;
	if (!mesh_text_ends(hello->node, sizeof(hello->node)) ||
	    !mesh_text_ends(hello->site, sizeof(hello->site)))
		return -EPROTO;
	for (i = 0; i < hello->num_nics; i++)
		if (!nic_is_sound(&hello->nics[i]))
			return -EPROTO;
	return 0;
}

static int facing_check(const struct mesh_check_facing *facing, size_t length)
{
	int i;

	if (facing->num_cables > MESH_NICS_MAX ||
	    length != offsetof(struct mesh_check_facing, cables) +
			      facing->num_cables * sizeof(facing->cables[0]))
		return -EPROTO;
	for (i = 0; i < facing->num_cables; i++) {
		const struct mesh_check_cable *cable = &facing->cables[i];

		if (!mesh_text_ends(cable->netdev, sizeof(cable->netdev)) ||
		    !mesh_text_ends(cable->peer_netdev, sizeof(cable->peer_netdev)) ||
		    !mesh_text_ends(cable->peer, sizeof(cable->peer)))
			return -EPROTO;
	}
	return 0;
}

static int payload_check(const struct mesh_check_frame *frame)
{
	switch (frame->header.type) {
	case MESH_CHECK_HELLO:
		return hello_check(&frame->hello, frame->header.length);
	case MESH_CHECK_FACING:
		return facing_check(&frame->facing, frame->header.length);
	case MESH_CHECK_FABRIC_OPEN:
	case MESH_CHECK_FABRIC_READY:
		return frame->fabric.provider > MESH_PROVIDER_ID_MAX ? -EPROTO : 0;
	case MESH_CHECK_FABRIC_RUN:
		return frame->fabric.ms > MESH_CHECK_RUN_MS_MAX ? -EPROTO : 0;
	case MESH_CHECK_RELAYED_RUN:
		return frame->relayed.ms > MESH_CHECK_RUN_MS_MAX ? -EPROTO : 0;
	case MESH_CHECK_BULK_ASK:
		return frame->bulk.ms > MESH_CHECK_RUN_MS_MAX ? -EPROTO : 0;
	case MESH_CHECK_ERROR:
		return mesh_text_ends(frame->error.text, sizeof(frame->error.text)) ? 0 : -EPROTO;
	default:
		return 0;
	}
}

/* Cleans every text of a frame that was checked. */
static void texts_clean(struct mesh_check_frame *frame)
{
	int i;

	switch (frame->header.type) {
	case MESH_CHECK_HELLO:
		mesh_text_clean(frame->hello.node);
		mesh_text_clean(frame->hello.site);
		for (i = 0; i < frame->hello.num_nics; i++)
			mesh_text_clean(frame->hello.nics[i].netdev);
		break;
	case MESH_CHECK_FACING:
		for (i = 0; i < frame->facing.num_cables; i++) {
			mesh_text_clean(frame->facing.cables[i].netdev);
			mesh_text_clean(frame->facing.cables[i].peer_netdev);
			mesh_text_clean(frame->facing.cables[i].peer);
		}
		break;
	case MESH_CHECK_ERROR:
		mesh_text_clean(frame->error.text);
		break;
	default:
		break;
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
	if (decoded.header.type == MESH_CHECK_ECHO || decoded.header.type == MESH_CHECK_BULK)
		decoded.opaque = payload;
	else
		memcpy(&decoded.hello, payload, decoded.header.length);
	ret = payload_check(&decoded);
	if (ret)
		return ret;
	texts_clean(&decoded);
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

int mesh_check_who_decode(const void *bytes, size_t size, struct mesh_check_who *who)
{
	struct mesh_check_who decoded;

	if (size != sizeof(decoded))
		return -EPROTO;
	memcpy(&decoded, bytes, sizeof(decoded));
	if (decoded.magic != MESH_CHECK_WHO_MAGIC ||
	    decoded.version != MESH_CHECK_DATAGRAM_VERSION || decoded.answer > 1 ||
	    !mesh_text_ends(decoded.netdev, sizeof(decoded.netdev)) ||
	    !mesh_text_ends(decoded.node, sizeof(decoded.node)))
		return -EPROTO;
	mesh_text_clean(decoded.netdev);
	mesh_text_clean(decoded.node);
	*who = decoded;
	return 0;
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
