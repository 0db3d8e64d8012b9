/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - encodes and decodes the 128-byte handle. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/memory.h"
#include "wire/handle.h"
#include "wire/protocol.h"

#define HANDLE_MAGIC 0x4853454du /* "MESH" */
/* Older handles have no name. */
#define NAMED_VERSION_MIN 5

/* Part of MESH_PROTOCOL_VERSION. Little-endian; protocol.h does not compile for other orders. */
struct handle_wire {
	uint32_t magic;
	uint8_t version;
	uint8_t num_ipv4; /* entries of 8 bytes, first */
	uint8_t num_ipv6; /* entries of 20 bytes, after the IPv4 ones */
	uint8_t dev;
	uint64_t node_id;
	uint64_t cookie;
	uint32_t listen_id;
	uint16_t control_port;
	uint8_t total_nics;
	uint8_t node_bytes; /* of the node's name, which ends where the entries' room ends */
	uint16_t near;
	uint8_t entries[MESH_HANDLE_ENTRY_BYTES];
	uint32_t checksum;   /* of all bytes before it: a truncated handle ends in zeros */
	uint64_t connect_id; /* not covered: the connector writes here */
};

_Static_assert(sizeof(struct handle_wire) == MESH_HANDLE_BYTES, "NCCL carries 128 bytes");
/* All of it stays the same from MESH_DIALLED_VERSION_MIN on, and some of it in all versions. */
_Static_assert(offsetof(struct handle_wire, version) == 4, "frozen, as the magic before it");
_Static_assert(offsetof(struct handle_wire, node_id) == 8, "wire format");
_Static_assert(offsetof(struct handle_wire, listen_id) == 24, "wire format");
_Static_assert(offsetof(struct handle_wire, node_bytes) == 31, "frozen from version 5 on");
_Static_assert(offsetof(struct handle_wire, near) == 32, "wire format");
_Static_assert(offsetof(struct handle_wire, entries) == 34, "wire format");
_Static_assert(offsetof(struct handle_wire, checksum) == 116, "frozen: the name ends here");
_Static_assert(offsetof(struct handle_wire, connect_id) == 120, "wire format");

/*
 * Follows the address in each entry: port (2 bytes), prefix length, and a byte with reserve,
 * also_tcp, provider and nic.
 */
#define ENTRY_TAIL_BYTES 4
#define ENTRY_RESERVE 0x80u
#define ENTRY_PROVIDER_SHIFT 4
#define ENTRY_ALSO_TCP 0x40u
#define ENTRY_PROVIDER_MASK 3u
_Static_assert(MESH_PROVIDER_ID_MAX <= ENTRY_PROVIDER_MASK, "two bits");
_Static_assert(MESH_NICS_MAX <= 16, "four bits");

static size_t entry_size(enum mesh_family family)
{
	return mesh_addr_size(family) + ENTRY_TAIL_BYTES;
}

static void entry_encode(const struct mesh_endpoint_addr *endpoint, uint8_t *entry)
{
	size_t n = mesh_addr_size(endpoint->addr.family);

	memcpy(entry, endpoint->addr.bytes, n);
	entry[n] = (uint8_t)(endpoint->port & 0xff);
	entry[n + 1] = (uint8_t)(endpoint->port >> 8);
	entry[n + 2] = endpoint->addr.prefix_len;
	entry[n + 3] =
		(uint8_t)((endpoint->reserve ? ENTRY_RESERVE : 0) |
			  (endpoint->also_tcp ? ENTRY_ALSO_TCP : 0) |
			  (unsigned int)endpoint->provider << ENTRY_PROVIDER_SHIFT | endpoint->nic);
}

static int entry_decode(const uint8_t *entry, enum mesh_family family,
			struct mesh_endpoint_addr *endpoint)
{
	size_t n = mesh_addr_size(family);

	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->addr.family = family;
	memcpy(endpoint->addr.bytes, entry, n);
	endpoint->port = (uint16_t)(entry[n] | entry[n + 1] << 8);
	endpoint->addr.prefix_len = entry[n + 2];
	endpoint->reserve = entry[n + 3] & ENTRY_RESERVE;
	endpoint->also_tcp = entry[n + 3] & ENTRY_ALSO_TCP;
	endpoint->provider =
		(enum mesh_provider_id)(entry[n + 3] >> ENTRY_PROVIDER_SHIFT & ENTRY_PROVIDER_MASK);
	endpoint->nic = entry[n + 3] & 0xf;
	if (endpoint->addr.prefix_len > 8 * n)
		return -EPROTO;
	if (endpoint->also_tcp && endpoint->provider != MESH_PROVIDER_VERBS_RXM)
		return -EPROTO;
	return 0;
}

static uint32_t handle_checksum(const struct handle_wire *wire)
{
	return mesh_checksum(wire, offsetof(struct handle_wire, checksum));
}

/*
 * Writes the endpoints of one family after @used bytes of entries, while they fit.
 * Returns how many were written; *used grows.
 */
static uint8_t entries_encode(const struct mesh_handle *handle, enum mesh_family family,
			      const bool *chosen, uint8_t *entries, size_t *used)
{
	uint8_t count = 0;
	int i;

	for (i = 0; i < handle->num_endpoints; i++) {
		if (!chosen[i] || handle->endpoints[i].addr.family != family)
			continue;
		entry_encode(&handle->endpoints[i], entries + *used);
		*used += entry_size(family);
		count++;
	}
	return count;
}

/* Marks the endpoints that fit, in the caller's order; returns their number. */
static int entries_choose(const struct mesh_handle *handle, bool *chosen)
{
	size_t used = 0;
	int i, count = 0;

	for (i = 0; i < handle->num_endpoints; i++) {
		size_t size = entry_size(handle->endpoints[i].addr.family);

		chosen[i] = handle->endpoints[i].addr.family != MESH_FAMILY_NONE &&
			    used + size <= MESH_HANDLE_ENTRY_BYTES;
		if (!chosen[i])
			continue;
		used += size;
		count++;
	}
	return count;
}

/* The name goes into the last bytes that the entries leave. */
static void node_encode(const char *node, size_t used, struct handle_wire *wire)
{
	size_t room = sizeof(wire->entries) - used, len = strnlen(node, MESH_NODE_NAME_MAX - 1);

	if (len > room)
		len = room;
	memcpy(wire->entries + sizeof(wire->entries) - len, node, len);
	wire->node_bytes = (uint8_t)len;
}

int mesh_handle_encode(const struct mesh_handle *handle, void *bytes)
{
	struct handle_wire wire = {
		.magic = HANDLE_MAGIC,
		.version = MESH_PROTOCOL_VERSION,
		.dev = handle->dev,
		.node_id = handle->node_id,
		.cookie = handle->cookie,
		.listen_id = handle->listen_id,
		.control_port = handle->control_port,
		.total_nics = handle->total_nics,
		.near = handle->near,
		.connect_id = handle->connect_id,
	};
	bool chosen[MESH_NICS_MAX];
	size_t used = 0;
	int count;

	count = entries_choose(handle, chosen);
	wire.num_ipv4 = entries_encode(handle, MESH_FAMILY_IPV4, chosen, wire.entries, &used);
	wire.num_ipv6 = entries_encode(handle, MESH_FAMILY_IPV6, chosen, wire.entries, &used);
	node_encode(handle->node, used, &wire);
	wire.checksum = handle_checksum(&wire);
	memcpy(bytes, &wire, sizeof(wire));
	return count;
}

static int entries_decode(const struct handle_wire *wire, struct mesh_handle *handle)
{
	const uint8_t *entry = wire->entries;
	int i, total = wire->num_ipv4 + wire->num_ipv6;

	if (total > MESH_NICS_MAX || wire->node_bytes >= MESH_NODE_NAME_MAX ||
	    wire->num_ipv4 * entry_size(MESH_FAMILY_IPV4) +
			    wire->num_ipv6 * entry_size(MESH_FAMILY_IPV6) + wire->node_bytes >
		    MESH_HANDLE_ENTRY_BYTES)
		return -EPROTO;
	for (i = 0; i < total; i++) {
		enum mesh_family family = i < wire->num_ipv4 ? MESH_FAMILY_IPV4 : MESH_FAMILY_IPV6;

		if (entry_decode(entry, family, &handle->endpoints[i]))
			return -EPROTO;
		entry += entry_size(family);
	}
	handle->num_endpoints = total;
	return 0;
}

/* Of any version from MESH_DIALLED_VERSION_MIN on. Returns 0 or -EPROTO. */
static int contents_decode(const struct handle_wire *wire, struct mesh_handle *handle)
{
	struct mesh_handle result;

	if (wire->checksum != handle_checksum(wire))
		return -EPROTO;
	memset(&result, 0, sizeof(result));
	result.node_id = wire->node_id;
	result.cookie = wire->cookie;
	result.connect_id = wire->connect_id;
	result.listen_id = wire->listen_id;
	result.control_port = wire->control_port;
	result.dev = wire->dev;
	result.total_nics = wire->total_nics;
	result.near = wire->near;
	result.foreign = wire->version != MESH_PROTOCOL_VERSION;
	if (entries_decode(wire, &result))
		return -EPROTO;
	mesh_handle_node(wire, result.node);
	*handle = result;
	return 0;
}

int mesh_handle_decode(const void *bytes, struct mesh_handle *handle)
{
	struct handle_wire wire;
	int ret = -EPROTO;

	memcpy(&wire, bytes, sizeof(wire));
	if (wire.magic != HANDLE_MAGIC)
		return -EPROTO;
	if (wire.version >= MESH_DIALLED_VERSION_MIN)
		ret = contents_decode(&wire, handle);
	return ret && wire.version != MESH_PROTOCOL_VERSION ? -EPROTONOSUPPORT : ret;
}

bool mesh_handle_nic_add(struct mesh_handle *handle, const struct mesh_endpoint_addr *endpoint)
{
	int i;

	for (i = 0; i < handle->num_endpoints; i++) {
		if (mesh_addr_equal(&handle->endpoints[i].addr, &endpoint->addr))
			return false;
	}
	if (handle->num_endpoints == MESH_NICS_MAX)
		return false;
	handle->endpoints[handle->num_endpoints++] = *endpoint;
	return true;
}

uint8_t mesh_handle_protocol(const void *bytes)
{
	return ((const uint8_t *)bytes)[offsetof(struct handle_wire, version)];
}

void mesh_handle_node(const void *bytes, char *node)
{
	const uint8_t *at = bytes;
	size_t len = at[offsetof(struct handle_wire, node_bytes)];

	node[0] = '\0';
	if (mesh_handle_protocol(bytes) < NAMED_VERSION_MIN || len >= MESH_NODE_NAME_MAX)
		return;
	at += offsetof(struct handle_wire, checksum) - len;
	/* A zero byte ends a foreign name early; nothing may lie behind it in @node. */
	len = strnlen((const char *)at, len);
	memcpy(node, at, len);
	node[len] = '\0';
	mesh_text_clean(node);
}

const char *mesh_handle_node_text(const struct mesh_handle *handle, char *text)
{
	const char *name = handle->node;

	snprintf(text, MESH_HANDLE_NODE_TEXT_MAX, "%s%sid %016llx%s", name, *name ? " (" : "",
		 (unsigned long long)handle->node_id, *name ? ")" : "");
	return text;
}

void mesh_handle_connect_id_set(void *bytes, uint64_t connect_id)
{
	memcpy((char *)bytes + offsetof(struct handle_wire, connect_id), &connect_id,
	       sizeof(connect_id));
}
