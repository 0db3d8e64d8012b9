/* SPDX-License-Identifier: Apache-2.0 */
/* test_handle.c - the 128 bytes: all fields are decoded, and damage is detected. */
#include "base/random.h"
#include "wire/handle.h"

#include "unit.h"

/* Of the wire format: where the connector's note begins, and which byte is the version. */
#define CHECKSUM_OFFSET 116
#define CONNECT_ID_OFFSET 120
#define VERSION_OFFSET 4
/* The length of the node's name, which ends at byte 116. */
#define NODE_BYTES_OFFSET 31

static void endpoint_add(struct mesh_handle *handle, const char *addr)
{
	int i = handle->num_endpoints++;
	struct mesh_endpoint_addr *endpoint = &handle->endpoints[i];

	assert_int_equal(mesh_addr_parse(addr, &endpoint->addr), 0);
	endpoint->port = (uint16_t)(0xa500 + 7 * i);
	endpoint->nic = (uint8_t)(15 - i);
	endpoint->provider = (enum mesh_provider_id)(1 + i % MESH_PROVIDER_ID_MAX);
	endpoint->reserve = i % 2;
	endpoint->also_tcp = endpoint->provider == MESH_PROVIDER_VERBS_RXM;
}

static void handle_init(struct mesh_handle *handle)
{
	memset(handle, 0, sizeof(*handle));
	handle->node_id = 0x1122334455667788;
	handle->cookie = 0xfedcba9876543210;
	handle->connect_id = 0x0f1e2d3c4b5a6978;
	handle->listen_id = 0xdeadbeef;
	handle->control_port = 0xc001;
	handle->dev = 13;
	handle->total_nics = 16;
	handle->near = 0xa00f;
}

static void endpoint_equal(const struct mesh_endpoint_addr *a, const struct mesh_endpoint_addr *b)
{
	assert_true(mesh_addr_equal(&a->addr, &b->addr));
	assert_int_equal(a->addr.prefix_len, b->addr.prefix_len);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->nic, b->nic);
	assert_int_equal(a->provider, b->provider);
	assert_int_equal(a->reserve, b->reserve);
	assert_int_equal(a->also_tcp, b->also_tcp);
}

/*
 * Addresses that are encoded, '-' for one of no family, and which of them arrive: of each family
 * the first ones, in order; IPv4 before IPv6.
 */
static void round_trip(const char *addrs, const char *kept)
{
	uint8_t room[MESH_HANDLE_BYTES + 2];
	struct mesh_handle handle, got;
	char list[512], order[64] = "", *text, *rest = list;
	int i, k;

	handle_init(&handle);
	snprintf(list, sizeof(list), "%s", addrs);
	while ((text = strtok_r(rest, " ", &rest))) {
		endpoint_add(&handle, *text == '-' ? "10.1.0.1/24" : text);
		if (*text == '-')
			handle.endpoints[handle.num_endpoints - 1].addr.family = MESH_FAMILY_NONE;
	}
	memset(room, 0x5a, sizeof(room));
	memset(&got, 0xa5, sizeof(got));
	i = mesh_handle_encode(&handle, room + 1); /* any alignment */
	assert_int_equal(room[0], 0x5a);
	assert_int_equal(room[MESH_HANDLE_BYTES + 1], 0x5a);
	assert_int_equal(mesh_handle_decode(room + 1, &got), 0);
	assert_int_equal(got.num_endpoints, i);
	for (i = 0; i < got.num_endpoints; i++)
		for (k = 0; k < handle.num_endpoints; k++)
			if (got.endpoints[i].port == handle.endpoints[k].port) {
				endpoint_equal(&got.endpoints[i], &handle.endpoints[k]);
				sprintf(order + strlen(order), "%s%d", i ? " " : "", k);
			}
	assert_string_equal(order, kept);
	assert_true(got.node_id == handle.node_id);
	assert_true(got.cookie == handle.cookie);
	assert_true(got.connect_id == handle.connect_id);
	assert_int_equal(got.listen_id, handle.listen_id);
	assert_int_equal(got.control_port, handle.control_port);
	assert_int_equal(got.dev, handle.dev);
	assert_int_equal(got.total_nics, handle.total_nics);
	assert_int_equal(got.near, handle.near);
}

#define IP4 "10.1.0.1/24 "
#define IP6 "fd00::1/64 "
#define TEN IP4 IP4 IP4 IP4 IP4 IP4 IP4 IP4 IP4 IP4

TEST(round_trips)
{
	round_trip("", "");
	round_trip("10.1.0.1/30 fd00:1::1/64 169.254.7.8/16 0.0.0.0/0 "
		   "fe80::1234:5678:9abc:def0/128",
		   "0 2 3 1 4");
	round_trip(TEN, "0 1 2 3 4 5 6 7 8 9");
	round_trip(TEN IP4, "0 1 2 3 4 5 6 7 8 9"); /* the last one does not fit */
	round_trip(TEN IP4 IP4 IP4 IP4 IP4 IP4, "0 1 2 3 4 5 6 7 8 9");
	round_trip(IP6 IP6 IP6 IP6 IP6, "0 1 2 3");
	/* 3 * 20 + 2 * 8 bytes leave 6 of the 82. */
	round_trip(IP6 IP4 IP6 IP4 IP6, "1 3 0 2 4");
	round_trip(IP6 IP4 IP6 IP4 IP6 IP4, "1 3 0 2 4");
	/* The caller's order decides which addresses are left out, whatever the family. */
	round_trip(IP6 IP6 IP6 IP6 "- - -", "0 1 2 3");
	round_trip(IP6 IP6 IP6 "- " IP4 "- -", "4 0 1 2");
	/* A smaller address behind one that does not fit may still do: 68 bytes, 16 are left. */
	round_trip(IP6 IP6 IP6 IP4 IP6 IP4, "3 5 0 1 2");
}

static void full_handle_encode(uint8_t *bytes)
{
	struct mesh_handle handle;

	handle_init(&handle);
	endpoint_add(&handle, "10.1.0.1/24");
	endpoint_add(&handle, "fd00::1/64");
	endpoint_add(&handle, "10.2.0.1/24");
	mesh_handle_encode(&handle, bytes);
}

static void assert_refused(const uint8_t *bytes, int error)
{
	struct mesh_handle got, before;

	memset(&got, 0xa5, sizeof(got));
	memset(&before, 0xa5, sizeof(before));
	assert_int_equal(mesh_handle_decode(bytes, &got), error);
	assert_memory_equal(&got, &before, sizeof(got)); /* untouched */
}

/* Every other value of every byte but the connector's own. */
TEST(corruption)
{
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_handle got;
	int i, flip;

	full_handle_encode(bytes);
	for (i = 0; i < CONNECT_ID_OFFSET; i++) {
		for (flip = 1; flip < 256; flip++) {
			bytes[i] ^= (uint8_t)flip;
			assert_refused(bytes, i == VERSION_OFFSET ? -EPROTONOSUPPORT : -EPROTO);
			bytes[i] ^= (uint8_t)flip;
		}
	}
	for (; i < MESH_HANDLE_BYTES; i++) {
		bytes[i] ^= 0xff;
		assert_int_equal(mesh_handle_decode(bytes, &got), 0);
	}
}

/* A handle of another version leads to its listener, if it is not damaged, and not too old. */
TEST(foreign)
{
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_handle own, got;
	uint32_t checksum;

	full_handle_encode(bytes);
	assert_int_equal(mesh_handle_decode(bytes, &own), 0);
	assert_false(own.foreign);
	for (int version = 0; version < 256; version++) {
		full_handle_encode(bytes);
		bytes[VERSION_OFFSET] = (uint8_t)version;
		if (version == MESH_PROTOCOL_VERSION)
			continue;
		if (version < MESH_DIALLED_VERSION_MIN) {
			assert_refused(bytes, -EPROTONOSUPPORT);
			continue;
		}
		assert_refused(bytes, -EPROTONOSUPPORT);
		checksum = mesh_checksum(bytes, CHECKSUM_OFFSET);
		memcpy(bytes + CHECKSUM_OFFSET, &checksum, sizeof(checksum));
		assert_int_equal(mesh_handle_decode(bytes, &got), 0);
		assert_true(got.foreign);
		got.foreign = false;
		assert_memory_equal(&got, &own, sizeof(got));
	}
}

/* The name has what the addresses leave: 82 bytes, less 8 for an IPv4 and 20 for an IPv6 NIC. */
TEST(node_name)
{
	static const char name[] = "a-node-whose-name-is-longer-than-the-rest-of-a-handle-can-hold";
	uint8_t bytes[MESH_HANDLE_BYTES];
	char text[MESH_HANDLE_NODE_TEXT_MAX];
	struct mesh_handle handle, got;

	handle_init(&handle);
	mesh_handle_encode(&handle, bytes);
	assert_int_equal(mesh_handle_decode(bytes, &got), 0);
	assert_string_equal(got.node, "");
	assert_string_equal(mesh_handle_node_text(&got, text), "id 1122334455667788");
	strcpy(handle.node, name);
	for (size_t room = 82; room >= 20; room -= 20) {
		mesh_handle_encode(&handle, bytes);
		assert_int_equal(mesh_handle_decode(bytes, &got), 0);
		assert_int_equal(strlen(got.node), room < strlen(name) ? room : strlen(name));
		assert_memory_equal(got.node, name, strlen(got.node));
		endpoint_add(&handle, "fd00::1/64");
	}
	strcpy(handle.node, "b\n");
	handle.num_endpoints = 1;
	mesh_handle_encode(&handle, bytes);
	assert_int_equal(mesh_handle_decode(bytes, &got), 0);
	assert_string_equal(mesh_handle_node_text(&got, text), "b? (id 1122334455667788)");
}

/* A node of another version is called by its name; its checksum and the rest may be different. */
TEST(name_of_other_versions)
{
	uint8_t bytes[MESH_HANDLE_BYTES];
	char node[MESH_NODE_NAME_MAX];
	struct mesh_handle handle;

	handle_init(&handle);
	strcpy(handle.node, "spark-2");
	mesh_handle_encode(&handle, bytes);
	bytes[VERSION_OFFSET] = 200;
	memset(bytes + VERSION_OFFSET + 1, 0xee, NODE_BYTES_OFFSET - VERSION_OFFSET - 1);
	mesh_handle_node(bytes, node);
	assert_string_equal(node, "spark-2");
	/* Before version 5 there was none, and a length that cannot be is not believed. */
	bytes[VERSION_OFFSET] = 4;
	mesh_handle_node(bytes, node);
	assert_string_equal(node, "");
	bytes[VERSION_OFFSET] = 5;
	bytes[NODE_BYTES_OFFSET] = MESH_NODE_NAME_MAX;
	mesh_handle_node(bytes, node);
	assert_string_equal(node, "");
}

static uint32_t fnv1a(const uint8_t *bytes, size_t size)
{
	uint32_t hash = 2166136261u;

	while (size--)
		hash = (hash ^ *bytes++) * 16777619u;
	return hash;
}

/* Changes one byte and makes the checksum right again, as a hostile or broken node might. */
static void forge(const uint8_t *whole, int offset, uint8_t value, uint8_t *forged)
{
	uint32_t checksum;

	memcpy(forged, whole, MESH_HANDLE_BYTES);
	forged[offset] = value;
	checksum = fnv1a(forged, 116);
	memcpy(forged + 116, &checksum, sizeof(checksum));
}

/* What a foreign name holds behind a zero byte is no part of the name and is not kept. */
TEST(name_with_zero)
{
	static const char zeros[MESH_NODE_NAME_MAX];
	uint8_t bytes[MESH_HANDLE_BYTES], forged[MESH_HANDLE_BYTES];
	struct mesh_handle handle, got;

	handle_init(&handle);
	strcpy(handle.node, "spark-2");
	mesh_handle_encode(&handle, bytes);
	forge(bytes, CHECKSUM_OFFSET - 2, 0, forged);
	assert_int_equal(mesh_handle_decode(forged, &got), 0);
	assert_string_equal(got.node, "spark");
	assert_memory_equal(got.node + 5, zeros, sizeof(got.node) - 5);
}

TEST(forged)
{
	/* Offsets of the wire format: counts at 5 and 6, entries from 34 on. */
	static const struct {
		int offset;
		uint8_t value;
		int ret;
	} cases[] = {
		{7, 0, 0},
		{5, 11, -EPROTO},
		{5, 255, -EPROTO},
		{6, 5, -EPROTO},
		{6, 255, -EPROTO},
		{5, 9, -EPROTO},
		{34 + 6, 32, 0},
		{34 + 6, 33, -EPROTO},
		{34 + 7, 0x3f, 0},
		{34 + 7, 0x50, 0},
		{34 + 7, 0x9f, 0},
		{34 + 7, 0x40, -EPROTO},
		{34 + 7, 0x60, -EPROTO},
		{34 + 7, 0xf0, -EPROTO},
		{50 + 18, 128, 0},
		{50 + 18, 129, -EPROTO},
		{50 + 19, 0x41, -EPROTO},
		/* The entries have 36 bytes of the 82. */
		{NODE_BYTES_OFFSET, 46, 0},
		{NODE_BYTES_OFFSET, 47, -EPROTO},
		{NODE_BYTES_OFFSET, 64, -EPROTO},
		{NODE_BYTES_OFFSET, 255, -EPROTO},
	};
	uint8_t whole[MESH_HANDLE_BYTES], forged[MESH_HANDLE_BYTES];
	struct mesh_handle got;

	full_handle_encode(whole);
	FOR_EACH(i, cases) {
		forge(whole, cases[i].offset, cases[i].value, forged);
		if (cases[i].ret)
			assert_refused(forged, cases[i].ret);
		else
			assert_int_equal(mesh_handle_decode(forged, &got), 0);
	}
}

/* One entry more than there is room for would be read from the checksum, which is good at times. */
TEST(forged_beyond_the_entries)
{
	uint8_t whole[MESH_HANDLE_BYTES], forged[MESH_HANDLE_BYTES];
	struct mesh_handle handle;

	handle_init(&handle);
	for (unsigned int i = 0; i < 10; i++)
		endpoint_add(&handle, "10.1.0.1/24");
	mesh_handle_encode(&handle, whole);
	assert_int_equal(whole[5], 10);
	whole[5]++;
	for (unsigned int i = 0; i < 1000; i++) {
		whole[8] = (uint8_t)i;
		forge(whole, 9, (uint8_t)(i >> 8), forged);
		assert_refused(forged, -EPROTO);
	}
}

/* NICs that become known later: each once, and as many as there is room for. */
TEST(nics_added)
{
	struct mesh_handle handle;
	struct mesh_endpoint_addr more = {.nic = 3, .provider = MESH_PROVIDER_TCP};

	handle_init(&handle);
	endpoint_add(&handle, "10.1.0.1/24");
	assert_true(mesh_handle_lacks_nics(&handle));
	assert_int_equal(mesh_addr_parse("10.1.0.1/24", &more.addr), 0);
	assert_false(mesh_handle_nic_add(&handle, &more));
	for (int i = 1; i < MESH_NICS_MAX; i++) {
		more.addr.bytes[3]++;
		assert_true(mesh_handle_nic_add(&handle, &more));
		endpoint_equal(&handle.endpoints[i], &more);
	}
	assert_false(mesh_handle_lacks_nics(&handle));
	more.addr.bytes[3]++;
	assert_false(mesh_handle_nic_add(&handle, &more));
	assert_int_equal(handle.num_endpoints, MESH_NICS_MAX);
}

TEST(connect_id)
{
	uint8_t room[MESH_HANDLE_BYTES + 1], *bytes = room + 1;
	struct mesh_handle got;

	full_handle_encode(bytes);
	mesh_handle_connect_id_set(bytes, UINT64_MAX - 1);
	assert_int_equal(mesh_handle_decode(bytes, &got), 0);
	assert_true(got.connect_id == UINT64_MAX - 1);
	assert_true(got.cookie == 0xfedcba9876543210);
}
