/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - checks the frames that come from other nodes: no field is trusted. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "wire/frame.h"

static const char *const refusals[] = {
	[MESH_REFUSAL_VERSION] = "it uses another protocol version: install the same plugin on "
				 "all nodes",
	[MESH_REFUSAL_PROVIDER] = "it uses another libfabric provider on this link: set "
				  "NCCL_MESH_PROVIDER to the same on all nodes",
	[MESH_REFUSAL_COOKIE] = "it has no such listener: it was closed, or the handle is from "
				"another run",
	[MESH_REFUSAL_RESOURCES] = "it is out of memory or connections",
	[MESH_REFUSAL_TUNER] =
		"its NCCL would choose other algorithms, and collectives would "
		"hang: set NCCL_MESH_TUNER and NCCL_MESH_PLAN to the same on all nodes",
	[MESH_REFUSAL_ROUTE] = "its kernel's route back to us leaves by another NIC",
	[MESH_REFUSAL_NO_ANSWER] = "it gave this link up, because no answer from here had reached "
				   "it for too long",
	[MESH_REFUSAL_NO_DATA] = "it gave this link up, because its large frames do not arrive "
				 "here: is the MTU of both NICs the same?",
	[MESH_REFUSAL_NO_WRITES] =
		"it gave this link up, because its RDMA writes were not "
		"answered, though TCP gets through: does a firewall drop UDP port 4791?",
	[MESH_REFUSAL_BROKEN] = "it gave this link up, because a connection on it broke",
	[MESH_REFUSAL_ENDED] = "it has ended this connection",
	[MESH_REFUSAL_RELAY_JOB] =
		"it relays nothing for this job: NCCL_MESH_RELAY is off there, "
		"or its launcher set another MASTER_ADDR and MASTER_PORT, or none",
	[MESH_REFUSAL_RELAY_LINK] = "it has no link to the next node of the route",
	[MESH_REFUSAL_RELAY_FULL] = "it has no memory left for another circuit: "
				    "NCCL_MESH_RELAY_MEMORY",
	[MESH_REFUSAL_RELAY_ROUTE] = "the route is too long, or is a circle",
};

const char *mesh_refusal_text(enum mesh_refusal refusal)
{
	if ((size_t)refusal < sizeof(refusals) / sizeof(refusals[0]) && refusals[refusal])
		return refusals[refusal];
	return "for a reason that this version does not know";
}

static bool nics_fit(const struct mesh_wire_nic *nics, int num_nics)
{
	struct mesh_endpoint_addr endpoint;
	int i;

	if (num_nics > MESH_NICS_MAX)
		return false;
	for (i = 0; i < num_nics; i++) {
		if (mesh_wire_nic_decode(&nics[i], &endpoint))
			return false;
	}
	return true;
}

static bool hello_fits(const struct mesh_frame *frame)
{
	const struct mesh_frame_hello *hello = &frame->hello;

	return nics_fit(hello->nics, hello->num_nics) &&
	       frame->header.length == mesh_frame_hello_size(hello->num_nics) && hello->name_len &&
	       hello->name_len <= MESH_ENDPOINT_NAME_MAX &&
	       hello->provider <= MESH_PROVIDER_ID_MAX && hello->nic < MESH_NICS_MAX &&
	       hello->routed <= 1 && hello->lane < MESH_LANES_MAX;
}

static bool new_nics_fit(const struct mesh_frame *frame)
{
	return nics_fit(frame->nics.nics, frame->nics.num_nics);
}

static bool connect_fits(const struct mesh_frame *frame)
{
	const struct mesh_frame_connect *connect = &frame->connect;

	return connect->num_paths <= MESH_PATHS_MAX &&
	       connect->path < (connect->epoch ? MESH_PATHS_MAX : connect->num_paths);
}

static bool open_fits(const struct mesh_frame *frame)
{
	const struct mesh_frame_open *open = &frame->open;
	int i, k;

	if (open->num_paths > MESH_PATHS_MAX ||
	    open->path >= (open->epoch ? MESH_PATHS_MAX : open->num_paths) || !open->num_relays ||
	    open->num_relays > MESH_RELAYS_MAX || open->at >= open->num_relays)
		return false;
	for (i = 0; i < open->num_relays; i++) {
		for (k = 0; k < i; k++) {
			if (open->route[i] == open->route[k])
				return false;
		}
	}
	return true;
}

static bool opened_fits(const struct mesh_frame *frame)
{
	const struct mesh_frame_opened *opened = &frame->opened;

	return opened->granule && opened->granule <= UINT32_MAX / MESH_GRANULES;
}

static bool circuit_fits(const struct mesh_frame *frame)
{
	return frame->circuit.event && frame->circuit.event < MESH_CIRCUIT_EVENTS;
}

#define TEXTS_MAX 3
#define SIZE_OF(member) sizeof(((struct mesh_frame *)NULL)->member)
#define TEXT(member)                                                                               \
	{                                                                                          \
		offsetof(struct mesh_frame, member), SIZE_OF(member)                               \
	}

static const struct frame_rule {
	size_t size;				      /* of the payload; for HELLO the smallest */
	bool (*fits)(const struct mesh_frame *frame); /* what type and texts do not say, or NULL */
	struct {
		size_t offset, size; /* in struct mesh_frame; 0: no text */
	} texts[TEXTS_MAX];
} rules[MESH_FRAME_TYPES] = {
	[MESH_FRAME_HELLO] = {offsetof(struct mesh_frame_hello, nics),
			      hello_fits,
			      {TEXT(hello.version), TEXT(hello.node_name), TEXT(hello.site)}},
	[MESH_FRAME_REFUSE] = {.size = SIZE_OF(refuse)},
	[MESH_FRAME_CONNECT] = {SIZE_OF(connect),
				connect_fits,
				{TEXT(connect.origin), TEXT(connect.via)}},
	[MESH_FRAME_WITHDRAW] = {.size = SIZE_OF(withdraw)},
	[MESH_FRAME_ACCEPT] = {.size = SIZE_OF(accept)},
	[MESH_FRAME_CLOSE] = {.size = SIZE_OF(close)},
	[MESH_FRAME_ASK] = {.size = SIZE_OF(ask)},
	[MESH_FRAME_PORT] = {.size = SIZE_OF(port)},
	[MESH_FRAME_RESUME] = {.size = SIZE_OF(resume)},
	[MESH_FRAME_HAVE] = {.size = SIZE_OF(have)},
	[MESH_FRAME_OPEN] = {SIZE_OF(open), open_fits, {TEXT(open.origin), TEXT(open.via)}},
	[MESH_FRAME_OPENED] = {SIZE_OF(opened), opened_fits, {TEXT(opened.via)}},
	[MESH_FRAME_CIRCUIT] = {SIZE_OF(circuit),
				circuit_fits,
				{TEXT(circuit.lost), TEXT(circuit.by)}},
	[MESH_FRAME_NICS] = {.size = SIZE_OF(nics), .fits = new_nics_fit},
};

static bool header_fits(const struct mesh_frame_header *header)
{
	size_t size = header->type < MESH_FRAME_TYPES ? rules[header->type].size : 0;
	size_t most = header->type == MESH_FRAME_HELLO ? SIZE_OF(hello) : size;

	return header->magic == MESH_FRAME_MAGIC && size && header->length >= size &&
	       header->length <= most;
}

/* True if each text of the frame ends within its room. */
static bool texts_end(const struct mesh_frame *frame)
{
	const struct frame_rule *rule = &rules[frame->header.type];
	int i;

	for (i = 0; i < TEXTS_MAX && rule->texts[i].size; i++) {
		if (!mesh_text_ends((const char *)frame + rule->texts[i].offset,
				    rule->texts[i].size))
			return false;
	}
	return true;
}

/* The texts are untrusted; those of a HELLO are printed before the peer is accepted. */
static void texts_clean(struct mesh_frame *frame)
{
	const struct frame_rule *rule = &rules[frame->header.type];
	int i;

	for (i = 0; i < TEXTS_MAX && rule->texts[i].size; i++)
		mesh_text_clean((char *)frame + rule->texts[i].offset);
}

/* The first bytes of a HELLO that its version and this one share. */
static size_t hello_shared_bytes(const struct mesh_frame_header *header)
{
	if (header->version >= MESH_DIALLED_VERSION_MIN &&
	    header->length >= MESH_HELLO_LISTENER_BYTES)
		return MESH_HELLO_LISTENER_BYTES;
	return header->length >= MESH_HELLO_FROZEN_BYTES ? MESH_HELLO_FROZEN_BYTES : 0;
}

/* A frame of another version: all versions share the header and the first bytes of a HELLO. */
static int foreign_decode(const struct mesh_frame_header *header, const uint8_t *bytes, size_t size,
			  struct mesh_frame *frame)
{
	struct mesh_frame_hello *hello = &frame->hello;
	size_t shared = header->type == MESH_FRAME_HELLO ? hello_shared_bytes(header) : 0;

	if (shared && size < sizeof(*header) + shared)
		return 0;
	memset(frame, 0, sizeof(*frame));
	frame->header = *header;
	if (shared) {
		memcpy(hello, bytes + sizeof(*header), shared);
		hello->node_id = hello->process_id = 0; /* what these mean may change */
		hello->version[sizeof(hello->version) - 1] = '\0';
		hello->node_name[sizeof(hello->node_name) - 1] = '\0';
		texts_clean(frame);
	}
	return -EPROTONOSUPPORT;
}

int mesh_frame_decode(const void *bytes, size_t size, struct mesh_frame *frame)
{
	struct mesh_frame_header header;
	struct mesh_frame result;
	size_t total;

	if (size < sizeof(header)) {
		/* The first bytes suffice to reject noise. */
		uint32_t magic = MESH_FRAME_MAGIC;
		size_t known = size < sizeof(magic) ? size : sizeof(magic);

		return memcmp(bytes, &magic, known) ? -EPROTO : 0;
	}
	memcpy(&header, bytes, sizeof(header));
	if (header.magic == MESH_FRAME_MAGIC && header.version != MESH_PROTOCOL_VERSION)
		return foreign_decode(&header, bytes, size, frame);
	if (!header_fits(&header))
		return -EPROTO;
	total = sizeof(header) + header.length;
	if (size < total)
		return 0;
	memset(&result, 0, sizeof(result));
	memcpy(&result, bytes, total);
	if (!texts_end(&result) || (rules[header.type].fits && !rules[header.type].fits(&result)))
		return -EPROTO;
	texts_clean(&result);
	*frame = result;
	return (int)total;
}

size_t mesh_frame_finish(struct mesh_frame *frame, enum mesh_frame_type type)
{
	size_t length = type == MESH_FRAME_HELLO ? mesh_frame_hello_size(frame->hello.num_nics)
						 : rules[type].size;

	frame->header = (struct mesh_frame_header){
		.magic = MESH_FRAME_MAGIC,
		.version = MESH_PROTOCOL_VERSION,
		.type = (uint8_t)type,
		.length = (uint16_t)length,
	};
	return sizeof(frame->header) + length;
}

/* Rounds up, so that a slow NIC is not encoded as unknown speed (0). */
static uint16_t speed_encode(int mbps)
{
	int units = mbps / MESH_WIRE_SPEED_MBPS + (mbps % MESH_WIRE_SPEED_MBPS > 0);

	return (uint16_t)(units > UINT16_MAX ? UINT16_MAX : units);
}

void mesh_wire_nic_encode(const struct mesh_endpoint_addr *endpoint, struct mesh_wire_nic *wire)
{
	memset(wire, 0, sizeof(*wire));
	wire->family = (uint8_t)endpoint->addr.family;
	wire->prefix_len = endpoint->addr.prefix_len;
	wire->nic = endpoint->nic;
	wire->provider = (uint8_t)((endpoint->reserve ? MESH_WIRE_NIC_RESERVE : 0) |
				   (endpoint->also_tcp ? MESH_WIRE_NIC_ALSO_TCP : 0) |
				   (unsigned int)endpoint->provider);
	wire->port = endpoint->port;
	wire->speed = speed_encode(endpoint->speed_mbps);
	memcpy(wire->addr, endpoint->addr.bytes, mesh_addr_size(endpoint->addr.family));
}

int mesh_wire_nic_decode(const struct mesh_wire_nic *wire, struct mesh_endpoint_addr *endpoint)
{
	uint8_t provider = wire->provider & MESH_WIRE_NIC_PROVIDER;
	bool also_tcp = wire->provider & MESH_WIRE_NIC_ALSO_TCP;
	size_t bytes;

	if (wire->family != MESH_FAMILY_IPV4 && wire->family != MESH_FAMILY_IPV6)
		return -EPROTO;
	bytes = mesh_addr_size((enum mesh_family)wire->family);
	if (wire->prefix_len > 8 * bytes || wire->nic >= MESH_NICS_MAX ||
	    provider > MESH_PROVIDER_ID_MAX || (also_tcp && provider != MESH_PROVIDER_VERBS_RXM))
		return -EPROTO;
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->addr.family = (enum mesh_family)wire->family;
	endpoint->addr.prefix_len = wire->prefix_len;
	memcpy(endpoint->addr.bytes, wire->addr, bytes);
	endpoint->port = wire->port;
	endpoint->speed_mbps = wire->speed * MESH_WIRE_SPEED_MBPS;
	endpoint->nic = wire->nic;
	endpoint->provider = (enum mesh_provider_id)provider;
	endpoint->also_tcp = also_tcp;
	endpoint->reserve = wire->provider & MESH_WIRE_NIC_RESERVE;
	return 0;
}
