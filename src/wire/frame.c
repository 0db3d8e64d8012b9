/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - checks the frames that come from other nodes: no field is trusted. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "wire/frame.h"

const char *mesh_refusal_text(enum mesh_refusal refusal)
{
	switch (refusal) {
	case MESH_REFUSAL_VERSION:
		return "it uses another protocol version: install the same plugin on all nodes";
	case MESH_REFUSAL_PROVIDER:
		return "it uses another libfabric provider on this link: set NCCL_MESH_PROVIDER to "
		       "the same on all nodes";
	case MESH_REFUSAL_COOKIE:
		return "it has no such listener: it was closed, or the handle is from another run";
	case MESH_REFUSAL_RESOURCES:
		return "it is out of memory or connections";
	case MESH_REFUSAL_TUNER:
		return "its NCCL would choose other algorithms, and collectives would hang: set "
		       "NCCL_MESH_TUNER and NCCL_MESH_PLAN to the same on all nodes";
	case MESH_REFUSAL_ROUTE:
		return "its kernel's route back to us leaves by another NIC";
	case MESH_REFUSAL_NO_ANSWER:
		return "it gave this link up, because no answer from here had reached it for too "
		       "long";
	case MESH_REFUSAL_NO_DATA:
		return "it gave this link up, because its large frames do not arrive here: is the "
		       "MTU of both NICs the same?";
	case MESH_REFUSAL_NO_WRITES:
		return "it gave this link up, because its RDMA writes were not answered, though "
		       "TCP gets through: does a firewall drop UDP port 4791?";
	case MESH_REFUSAL_BROKEN:
		return "it gave this link up, because a connection on it broke";
	case MESH_REFUSAL_LEFT:
		return "it ended this attempt to connect";
	case MESH_REFUSAL_ENDED:
		return "it has ended this connection";
	case MESH_REFUSAL_RELAY_JOB:
		return "it relays nothing for this job: NCCL_MESH_RELAY is off there, or its "
		       "launcher set another MASTER_ADDR and MASTER_PORT, or none";
	case MESH_REFUSAL_RELAY_LINK:
		return "it has no link to the next node of the route";
	case MESH_REFUSAL_RELAY_FULL:
		return "it has no memory left for another circuit: NCCL_MESH_RELAY_MEMORY";
	case MESH_REFUSAL_RELAY_ROUTE:
		return "the route is too long, or leads in a circle";
	}
	return "for a reason that this version does not know";
}

/* The payload size of a frame of this type, in bytes; for HELLO the smallest. */
static size_t frame_payload_size(uint8_t type)
{
	switch ((enum mesh_frame_type)type) {
	case MESH_FRAME_HELLO:
		return mesh_frame_hello_size(0);
	case MESH_FRAME_REFUSE:
		return sizeof(struct mesh_frame_refuse);
	case MESH_FRAME_CONNECT:
		return sizeof(struct mesh_frame_connect);
	case MESH_FRAME_WITHDRAW:
		return sizeof(struct mesh_frame_withdraw);
	case MESH_FRAME_ACCEPT:
		return sizeof(struct mesh_frame_accept);
	case MESH_FRAME_CLOSE:
		return sizeof(struct mesh_frame_close);
	case MESH_FRAME_CLOSED:
		return sizeof(struct mesh_frame_closed);
	case MESH_FRAME_ASK:
		return sizeof(struct mesh_frame_ask);
	case MESH_FRAME_SENT:
		return sizeof(struct mesh_frame_sent);
	case MESH_FRAME_PORT:
		return sizeof(struct mesh_frame_port);
	case MESH_FRAME_RESUME:
		return sizeof(struct mesh_frame_resume);
	case MESH_FRAME_HAVE:
		return sizeof(struct mesh_frame_have);
	case MESH_FRAME_OPEN:
		return sizeof(struct mesh_frame_open);
	case MESH_FRAME_OPENED:
		return sizeof(struct mesh_frame_opened);
	case MESH_FRAME_CIRCUIT:
		return sizeof(struct mesh_frame_circuit);
	case MESH_FRAME_NICS:
		return sizeof(struct mesh_frame_nics);
	case MESH_FRAME_PARK:
		return sizeof(struct mesh_frame_park);
	case MESH_FRAME_TYPES:
		break;
	}
	return 0;
}

static int frame_header_check(const struct mesh_frame_header *header)
{
	size_t size;

	if (header->magic != MESH_FRAME_MAGIC)
		return -EPROTO;
	size = frame_payload_size(header->type);
	if (header->type == MESH_FRAME_HELLO)
		return header->length >= size && header->length <= sizeof(struct mesh_frame_hello)
			       ? 0
			       : -EPROTO;
	return size && header->length == size ? 0 : -EPROTO;
}

static int hello_check(const struct mesh_frame_hello *hello, size_t length)
{
	struct mesh_endpoint_addr endpoint;
	int i;

	if (hello->num_nics > MESH_NICS_MAX || length != mesh_frame_hello_size(hello->num_nics))
		return -EPROTO;
	if (!hello->name_len || hello->name_len > MESH_ENDPOINT_NAME_MAX)
		return -EPROTO;
	if (!mesh_text_ends(hello->version, sizeof(hello->version)) ||
	    !mesh_text_ends(hello->node_name, sizeof(hello->node_name)) ||
	    !mesh_text_ends(hello->site, sizeof(hello->site)))
		return -EPROTO;
	if (hello->provider > MESH_PROVIDER_ID_MAX || hello->nic >= MESH_NICS_MAX ||
	    hello->routed > 1 || hello->lane >= MESH_LANES_MAX)
		return -EPROTO;
	for (i = 0; i < hello->num_nics; i++) {
		if (mesh_wire_nic_decode(&hello->nics[i], &endpoint))
			return -EPROTO;
	}
	return 0;
}

static int nics_check(const struct mesh_frame_nics *nics)
{
	struct mesh_endpoint_addr endpoint;
	int i;

	if (nics->num_nics > MESH_NICS_MAX)
		return -EPROTO;
	for (i = 0; i < nics->num_nics; i++) {
		if (mesh_wire_nic_decode(&nics->nics[i], &endpoint))
			return -EPROTO;
	}
	return 0;
}

static int park_check(const struct mesh_frame_park *park)
{
	return park->parked > 1 ? -EPROTO : 0;
}

static int connect_check(const struct mesh_frame_connect *connect)
{
	if (connect->num_paths > MESH_PATHS_MAX ||
	    connect->path >= (connect->epoch ? MESH_PATHS_MAX : connect->num_paths))
		return -EPROTO;
	if (!mesh_text_ends(connect->origin, sizeof(connect->origin)) ||
	    !mesh_text_ends(connect->via, sizeof(connect->via)))
		return -EPROTO;
	return 0;
}

static int route_check(const struct mesh_frame_open *open)
{
	int i, k;

	if (!open->num_relays || open->num_relays > MESH_RELAYS_MAX || open->at >= open->num_relays)
		return -EPROTO;
	for (i = 0; i < open->num_relays; i++) {
		for (k = 0; k < i; k++) {
			if (open->route[i] == open->route[k])
				return -EPROTO;
		}
	}
	return 0;
}

static int open_check(const struct mesh_frame_open *open)
{
	if (open->num_paths > MESH_PATHS_MAX || open->path >= open->num_paths)
		return -EPROTO;
	if (!mesh_text_ends(open->origin, sizeof(open->origin)) ||
	    !mesh_text_ends(open->via, sizeof(open->via)))
		return -EPROTO;
	return route_check(open);
}

static int opened_check(const struct mesh_frame_opened *opened)
{
	if (!opened->granule || opened->granule > UINT32_MAX / MESH_GRANULES)
		return -EPROTO;
	if (!opened->limit || opened->limit > MESH_GRANULES)
		return -EPROTO;
	return mesh_text_ends(opened->via, sizeof(opened->via)) ? 0 : -EPROTO;
}

static int circuit_check(const struct mesh_frame_circuit *circuit)
{
	if (!circuit->event || circuit->event >= MESH_CIRCUIT_EVENTS)
		return -EPROTO;
	if (!mesh_text_ends(circuit->lost, sizeof(circuit->lost)) ||
	    !mesh_text_ends(circuit->by, sizeof(circuit->by)))
		return -EPROTO;
	return 0;
}

/* What the type alone does not say; HELLO is checked by itself. */
static int payload_check(const struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_HELLO:
		return hello_check(&frame->hello, frame->header.length);
	case MESH_FRAME_CONNECT:
		return connect_check(&frame->connect);
	case MESH_FRAME_OPEN:
		return open_check(&frame->open);
	case MESH_FRAME_OPENED:
		return opened_check(&frame->opened);
	case MESH_FRAME_CIRCUIT:
		return circuit_check(&frame->circuit);
	case MESH_FRAME_NICS:
		return nics_check(&frame->nics);
	case MESH_FRAME_PARK:
		return park_check(&frame->park);
	default:
		return 0;
	}
}

/* The texts are untrusted and are printed before the peer is accepted. */
static void hello_texts_clean(struct mesh_frame_hello *hello)
{
	mesh_text_clean(hello->version);
	mesh_text_clean(hello->node_name);
	mesh_text_clean(hello->site);
}

static void texts_clean(struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_HELLO:
		hello_texts_clean(&frame->hello);
		break;
	case MESH_FRAME_CONNECT:
		mesh_text_clean(frame->connect.origin);
		mesh_text_clean(frame->connect.via);
		break;
	case MESH_FRAME_OPEN:
		mesh_text_clean(frame->open.origin);
		mesh_text_clean(frame->open.via);
		break;
	case MESH_FRAME_OPENED:
		mesh_text_clean(frame->opened.via);
		break;
	case MESH_FRAME_CIRCUIT:
		mesh_text_clean(frame->circuit.lost);
		mesh_text_clean(frame->circuit.by);
		break;
	default:
		break;
	}
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
		hello_texts_clean(hello);
	}
	return -EPROTONOSUPPORT;
}

int mesh_frame_decode(const void *bytes, size_t size, struct mesh_frame *frame)
{
	struct mesh_frame_header header;
	struct mesh_frame result;
	size_t total;
	int ret;

	if (size < sizeof(header)) {
		/* The first bytes suffice to reject noise. */
		uint32_t magic = MESH_FRAME_MAGIC;
		size_t known = size < sizeof(magic) ? size : sizeof(magic);

		return memcmp(bytes, &magic, known) ? -EPROTO : 0;
	}
	memcpy(&header, bytes, sizeof(header));
	if (header.magic == MESH_FRAME_MAGIC && header.version != MESH_PROTOCOL_VERSION)
		return foreign_decode(&header, bytes, size, frame);
	ret = frame_header_check(&header);
	if (ret)
		return ret;
	total = sizeof(header) + header.length;
	if (size < total)
		return 0;
	memset(&result, 0, sizeof(result));
	memcpy(&result, bytes, total);
	if (payload_check(&result))
		return -EPROTO;
	texts_clean(&result);
	*frame = result;
	return (int)total;
}

size_t mesh_frame_finish(struct mesh_frame *frame, enum mesh_frame_type type)
{
	size_t length = type == MESH_FRAME_HELLO ? mesh_frame_hello_size(frame->hello.num_nics)
						 : frame_payload_size((uint8_t)type);

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
