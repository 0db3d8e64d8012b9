/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame.c - frames: whole ones are read, all others refused. */
#include <limits.h>

#include "wire/frame.h"

#include "unit.h"

/* Offsets in a frame, with its header of 8 bytes. */
#define VERSION_OFFSET 4
#define TYPE_OFFSET 5
#define LENGTH_OFFSET 6
#define HELLO_AT(field) (8 + offsetof(struct mesh_frame_hello, field))

/* Decodes from memory of exactly @size bytes, so that a sanitizer sees any read behind them. */
static int decode_exact(const void *bytes, size_t size, struct mesh_frame *frame)
{
	void *exact = malloc(size ? size : 1);
	int ret;

	assert_non_null(exact);
	memcpy(exact, bytes, size);
	ret = mesh_frame_decode((char *)exact + !size, size, frame);
	free(exact);
	return ret;
}

static void frame_refused(const void *bytes, size_t size, int error)
{
	struct mesh_frame got, before;

	memset(&got, 0xa5, sizeof(got));
	memset(&before, 0xa5, sizeof(before));
	assert_int_equal(decode_exact(bytes, size, &got), error);
	assert_memory_equal(&got, &before, sizeof(got));
}

static void hello_init(struct mesh_frame *frame, int num_nics)
{
	struct mesh_frame_hello *hello = &frame->hello;
	struct mesh_endpoint_addr endpoint;

	memset(frame, 0, sizeof(*frame));
	hello->node_id = 0x1122334455667788;
	hello->process_id = 0x99aabbccddeeff00;
	hello->cookie = 42;
	hello->listen_id = 7;
	hello->peer_id = 0x8001;
	hello->peer_token = 0xcafe;
	hello->provider = MESH_PROVIDER_TCP;
	hello->nic = 3;
	hello->num_nics = (uint8_t)num_nics;
	hello->name_len = 16;
	memset(hello->endpoint_name, 0xee, 16);
	strcpy(hello->node_name, "node1");
	for (int i = 0; i < num_nics; i++) {
		memset(&endpoint, 0, sizeof(endpoint));
		mesh_addr_parse(i % 2 ? "fd00::1/64" : "10.1.0.1/30", &endpoint.addr);
		endpoint.port = (uint16_t)(5000 + i);
		endpoint.nic = (uint8_t)i;
		endpoint.provider = MESH_PROVIDER_VERBS_RXM;
		mesh_wire_nic_encode(&endpoint, &hello->nics[i]);
	}
}

/* Whole, with bytes of the next frame behind it, and every prefix. */
static void frame_round_trip(struct mesh_frame *frame, enum mesh_frame_type type, size_t expected)
{
	uint8_t bytes[2 * sizeof(*frame)];
	struct mesh_frame got;
	size_t size, len;

	size = mesh_frame_finish(frame, type);
	assert_int_equal(size, expected);
	memset(bytes, 0x77, sizeof(bytes));
	memcpy(bytes, frame, size);
	memset(&got, 0xa5, sizeof(got));
	assert_int_equal(decode_exact(bytes, size, &got), (int)size);
	assert_int_equal(got.header.type, type);
	assert_memory_equal(&got, frame, sizeof(got)); /* what was not sent is zero */
	assert_int_equal(decode_exact(bytes, sizeof(bytes), &got), (int)size);
	for (len = 0; len < size; len++)
		frame_refused(bytes, len, 0);
}

/* A frame with this body has so many bytes behind its header. */
#define ROUND_TRIP(body, type, size)                                                               \
	do {                                                                                       \
		memset(&frame, 0, sizeof(frame));                                                  \
		body;                                                                              \
		frame_round_trip(&frame, type, 8 + (size));                                        \
	} while (0)

TEST(frames)
{
	struct mesh_frame frame;

	ROUND_TRIP(frame.accept = ((struct mesh_frame_accept){1, 2, 3, 0}), MESH_FRAME_ACCEPT, 16);
	ROUND_TRIP(frame.close = ((struct mesh_frame_close){1, 1, 2, 3, 1, 0}), MESH_FRAME_CLOSE,
		   24);
	ROUND_TRIP(frame.ask = ((struct mesh_frame_ask){1, UINT32_MAX, 1}), MESH_FRAME_ASK, 12);
	ROUND_TRIP(frame.port = ((struct mesh_frame_port){UINT16_MAX, {0}}), MESH_FRAME_PORT, 8);
	ROUND_TRIP(frame.refuse = ((struct mesh_frame_refuse){MESH_REFUSAL_VERSION, 1, 2, 0}),
		   MESH_FRAME_REFUSE, 16);
}

TEST(hello)
{
	struct mesh_frame frame;

	for (int n = 0; n <= MESH_NICS_MAX; n++) {
		hello_init(&frame, n);
		frame_round_trip(&frame, MESH_FRAME_HELLO, 8 + 248 + 24 * (size_t)n);
	}
}

/* One byte of a good HELLO is changed. */
static void hello_with(int num_nics, size_t offset, uint8_t value, int expected)
{
	struct mesh_frame frame, got;
	size_t size;

	hello_init(&frame, num_nics);
	size = mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	((uint8_t *)&frame)[offset] = value;
	if (expected <= 0)
		frame_refused(&frame, size, expected);
	else
		assert_int_equal(decode_exact(&frame, size, &got), (int)size);
}

TEST(hello_fields)
{
	const size_t nic1 = HELLO_AT(nics) + sizeof(struct mesh_wire_nic);

	hello_with(2, HELLO_AT(num_nics), 1, -EPROTO);
	hello_with(2, HELLO_AT(num_nics), 3, -EPROTO);
	hello_with(16, HELLO_AT(num_nics), 17, -EPROTO);
	hello_with(2, HELLO_AT(name_len), 0, -EPROTO);
	hello_with(2, HELLO_AT(name_len), MESH_ENDPOINT_NAME_MAX, 1);
	hello_with(2, HELLO_AT(name_len), MESH_ENDPOINT_NAME_MAX + 1, -EPROTO);
	hello_with(2, HELLO_AT(provider), MESH_PROVIDER_ID_MAX, 1);
	hello_with(2, HELLO_AT(provider), MESH_PROVIDER_ID_MAX + 1, -EPROTO);
	hello_with(2, HELLO_AT(nic), MESH_NICS_MAX - 1, 1);
	hello_with(2, HELLO_AT(nic), MESH_NICS_MAX, -EPROTO);
	hello_with(2, HELLO_AT(routed), 1, 1);
	hello_with(2, HELLO_AT(routed), 2, -EPROTO);
	hello_with(2, HELLO_AT(lane), MESH_LANES_MAX - 1, 1);
	hello_with(2, HELLO_AT(lane), MESH_LANES_MAX, -EPROTO);
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, family), 5, -EPROTO);
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, family), 0, -EPROTO);
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, prefix_len), 129, -EPROTO);
	hello_with(1, HELLO_AT(nics) + offsetof(struct mesh_wire_nic, prefix_len), 33, -EPROTO);
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, nic), MESH_NICS_MAX, -EPROTO);
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, provider), 4, -EPROTO);
	/* tcp beside something else than RDMA */
	hello_with(2, nic1 + offsetof(struct mesh_wire_nic, provider),
		   MESH_WIRE_NIC_ALSO_TCP | MESH_PROVIDER_TCP, -EPROTO);
}

/* A node name of 64 characters has no end, and a site's name of 16 has none. */
TEST(hello_text_end)
{
	struct mesh_frame frame, got;
	size_t size;

	hello_init(&frame, 1);
	size = mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	memset(frame.hello.node_name, 'n', MESH_NODE_NAME_MAX);
	frame_refused(&frame, size, -EPROTO);
	frame.hello.node_name[MESH_NODE_NAME_MAX - 1] = '\0';
	memset(frame.hello.site, 's', MESH_SITE_NAME_MAX);
	frame_refused(&frame, size, -EPROTO);
	frame.hello.site[MESH_SITE_NAME_MAX - 1] = '\0';
	assert_int_equal(decode_exact(&frame, size, &got), (int)size);
}

/* They go into the log. */
TEST(hello_name_is_printable)
{
	struct mesh_frame frame, got;
	size_t size;

	hello_init(&frame, 1);
	size = mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	strcpy(frame.hello.node_name, "a b~\n\x1b[2J\x7f\x9b\xff.c");
	strcpy(frame.hello.site, "east\n");
	assert_int_equal(decode_exact(&frame, size, &got), (int)size);
	assert_string_equal(got.hello.site, "east?");
	assert_string_equal(got.hello.node_name, "a b~??[2J???.c");
}

static void open_init(struct mesh_frame *frame)
{
	memset(frame, 0, sizeof(*frame));
	frame->open.comm_key = UINT64_MAX;
	frame->open.num_paths = 1;
	frame->open.num_relays = 2;
	frame->open.route[0] = 11;
	frame->open.route[1] = 12;
	strcpy(frame->open.origin, "a");
	strcpy(frame->open.via, "b");
}

/* A frame of this type whose fields are valid; for others those of a HELLO. */
static void valid_init(struct mesh_frame *frame, unsigned int type)
{
	memset(frame, 0, sizeof(*frame));
	if (type == MESH_FRAME_OPEN)
		open_init(frame);
	else if (type == MESH_FRAME_OPENED)
		frame->opened.granule = 1;
	else if (type == MESH_FRAME_CIRCUIT)
		frame->circuit.event = MESH_CIRCUIT_SHUT;
	else
		hello_init(frame, 2);
	/* HELLO has other bytes there, and its name shrinks. */
	if (type != MESH_FRAME_OPEN && type != MESH_FRAME_OPENED && type != MESH_FRAME_CIRCUIT) {
		frame->connect.path = 0;
		frame->connect.num_paths = MESH_PATHS_MAX;
	}
	mesh_frame_finish(frame, MESH_FRAME_HELLO);
}

/* Every length but the right one, for every type; the memory is large enough for all of them. */
TEST(frame_lengths)
{
	/* HELLO with two NICs; 0: not a type. */
	static const uint16_t lengths[256] = {
		[MESH_FRAME_HELLO] = 296,   [MESH_FRAME_REFUSE] = 16,	[MESH_FRAME_CONNECT] = 232,
		[MESH_FRAME_ACCEPT] = 16,   [MESH_FRAME_CLOSE] = 24,	[MESH_FRAME_ASK] = 12,
		[MESH_FRAME_PORT] = 8,	    [MESH_FRAME_WITHDRAW] = 24, [MESH_FRAME_RESUME] = 48,
		[MESH_FRAME_HAVE] = 144,    [MESH_FRAME_OPEN] = 480,	[MESH_FRAME_OPENED] = 168,
		[MESH_FRAME_CIRCUIT] = 168, [MESH_FRAME_NICS] = 392,
	};
	uint8_t bytes[8 + UINT16_MAX];
	struct mesh_frame frame, got;

	memset(bytes, 0, sizeof(bytes));
	for (unsigned int type = 0; type < 256; type++) {
		unsigned int right = lengths[type];

		valid_init(&frame, type);
		memcpy(bytes, &frame, sizeof(frame));
		bytes[TYPE_OFFSET] = (uint8_t)type;
		for (unsigned int length = 0; length <= 600; length++) {
			int ret;

			bytes[LENGTH_OFFSET] = (uint8_t)length;
			bytes[LENGTH_OFFSET + 1] = (uint8_t)(length >> 8);
			ret = mesh_frame_decode(bytes, sizeof(bytes), &got);
			assert_int_equal(ret,
					 right && length == right ? (int)(8 + length) : -EPROTO);
		}
		bytes[LENGTH_OFFSET] = bytes[LENGTH_OFFSET + 1] = 0xff;
		assert_int_equal(mesh_frame_decode(bytes, sizeof(bytes), &got), -EPROTO);
	}
}

/* The header alone shows another version, whatever type and length it uses, except in a HELLO. */
TEST(frame_version)
{
	struct mesh_frame frame, got;

	hello_init(&frame, 1);
	mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	for (unsigned int version = 0; version < 256; version++) {
		if (version == MESH_PROTOCOL_VERSION)
			continue;
		frame.header.version = (uint8_t)version;
		frame.header.type = 200;
		frame.header.length = 9999;
		assert_int_equal(decode_exact(&frame, 8, &got), -EPROTONOSUPPORT);
		assert_int_equal(decode_exact(&frame, sizeof(frame), &got), -EPROTONOSUPPORT);
		assert_int_equal(got.header.version, version);
		frame_refused(&frame, 7, 0);
	}
}

/*
 * Of a HELLO of another version @shared bytes are read: nothing behind them is looked at, nor is
 * the listener by versions that do not have it there.
 */
static void foreign_hello_decode(uint8_t version, size_t shared)
{
	const size_t known = sizeof(struct mesh_frame_header) + shared;
	const bool names_listener = shared > MESH_HELLO_FROZEN_BYTES;
	struct mesh_frame frame, got;
	uint8_t bytes[sizeof(frame)];

	hello_init(&frame, 1);
	frame.hello.cookie = 0x1234567890abcdef;
	frame.hello.listen_id = 77;
	strcpy(frame.hello.version, "9.0\x1b[1");
	memset(frame.hello.node_name, 'n', sizeof(frame.hello.node_name)); /* no end */
	mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	frame.header.version = version;
	frame.header.length = 9999;
	memcpy(bytes, &frame, sizeof(bytes));
	memset(bytes + known, 0xee, sizeof(bytes) - known);
	for (size_t len = 8; len < known; len++)
		assert_int_equal(mesh_frame_decode(bytes, len, &got), 0);
	assert_int_equal(mesh_frame_decode(bytes, known, &got), -EPROTONOSUPPORT);
	assert_int_equal(got.header.version, version);
	assert_string_equal(got.hello.version, "9.0?[1");
	assert_int_equal(strlen(got.hello.node_name), MESH_NODE_NAME_MAX - 1);
	assert_int_equal(got.hello.node_id, 0);
	assert_int_equal(got.hello.process_id, 0);
	assert_true(got.hello.cookie == (names_listener ? 0x1234567890abcdef : 0));
	assert_int_equal(got.hello.listen_id, names_listener ? 77 : 0);
	assert_int_equal(got.hello.peer_id, 0);
	/* One that is too short for them has none. */
	frame.header.length = MESH_HELLO_FROZEN_BYTES - 1;
	memcpy(bytes, &frame, sizeof(bytes));
	assert_int_equal(mesh_frame_decode(bytes, 8, &got), -EPROTONOSUPPORT);
	assert_string_equal(got.hello.version, "");
}

TEST(foreign_hello)
{
	foreign_hello_decode(MESH_PROTOCOL_VERSION + 1, MESH_HELLO_LISTENER_BYTES);
	foreign_hello_decode(MESH_DIALLED_VERSION_MIN, MESH_HELLO_LISTENER_BYTES);
	foreign_hello_decode(MESH_DIALLED_VERSION_MIN - 1, MESH_HELLO_FROZEN_BYTES);
}

/* Noise is refused at its first byte, before the rest has arrived. */
TEST(frame_noise)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: node1\r\n\r\n";
	struct mesh_frame frame;

	for (size_t len = 1; len < sizeof(http); len++)
		frame_refused(http, len, -EPROTO);
	hello_init(&frame, 1);
	mesh_frame_finish(&frame, MESH_FRAME_HELLO);
	for (size_t i = 0; i < 4; i++) {
		uint8_t *byte = (uint8_t *)&frame + i;

		*byte ^= 0x10;
		for (size_t len = i + 1; len <= 8 + 232; len++)
			frame_refused(&frame, len, -EPROTO);
		*byte ^= 0x10;
	}
}

TEST(wire_nic)
{
	static const char *const addrs[] = {"10.1.2.3/32", "0.0.0.0/0", "fd00::1/128", "fe80::1/0"};
	struct mesh_endpoint_addr endpoint, got;
	struct mesh_wire_nic wire;

	FOR_EACH(i, addrs) {
		memset(&endpoint, 0, sizeof(endpoint));
		assert_int_equal(mesh_addr_parse(addrs[i], &endpoint.addr), 0);
		endpoint.addr.scope_id = 0;
		endpoint.port = 0xfffe;
		endpoint.nic = MESH_NICS_MAX - 1;
		endpoint.provider = MESH_PROVIDER_TCP_RXM;
		endpoint.speed_mbps = 50000 * ((int)i + 1);
		endpoint.reserve = i % 2;
		endpoint.also_tcp = i > 1;
		if (endpoint.also_tcp)
			endpoint.provider = MESH_PROVIDER_VERBS_RXM;
		memset(&wire, 0xa5, sizeof(wire));
		mesh_wire_nic_encode(&endpoint, &wire);
		assert_int_equal(wire.speed, (i + 1) * 500);
		memset(&got, 0xa5, sizeof(got));
		assert_int_equal(mesh_wire_nic_decode(&wire, &got), 0);
		assert_memory_equal(&got, &endpoint, sizeof(got));
	}
}

/* No bits are compared of an address that is none. */
TEST(wire_nic_family)
{
	struct mesh_wire_nic wire = {.provider = MESH_PROVIDER_TCP};
	struct mesh_endpoint_addr got;

	for (unsigned int family = 0; family < 256; family++) {
		bool known = family == MESH_FAMILY_IPV4 || family == MESH_FAMILY_IPV6;

		wire.family = (uint8_t)family;
		assert_int_equal(mesh_wire_nic_decode(&wire, &got), known ? 0 : -EPROTO);
	}
}

/* Unknown stays unknown, slow is not unknown, and what is too fast for 16 bits is the fastest. */
TEST(wire_speed)
{
	static const struct {
		int mbps, arrives;
	} cases[] = {{0, 0}, {10, 100}, {100, 100}, {101, 200}, {INT_MAX, 6553500}};
	struct mesh_endpoint_addr endpoint = {.addr = {.family = MESH_FAMILY_IPV4}}, got;
	struct mesh_wire_nic wire;

	FOR_EACH(i, cases) {
		endpoint.speed_mbps = cases[i].mbps;
		mesh_wire_nic_encode(&endpoint, &wire);
		assert_int_equal(mesh_wire_nic_decode(&wire, &got), 0);
		assert_int_equal(got.speed_mbps, cases[i].arrives);
	}
}

/* A CONNECT names a path that exists. */
TEST(connect)
{
	struct mesh_frame frame, got;

	for (unsigned int num = 0; num < 12; num++) {
		for (unsigned int path = 0; path < 12; path++) {
			size_t size;

			memset(&frame, 0, sizeof(frame));
			frame.connect = (struct mesh_frame_connect){
				.cookie = UINT64_MAX,
				.comm_key = 1,
				.path = (uint8_t)path,
				.num_paths = (uint8_t)num,
			};
			size = mesh_frame_finish(&frame, MESH_FRAME_CONNECT);
			assert_int_equal(size, 8 + 232);
			assert_int_equal(mesh_frame_decode(&frame, size, &got),
					 num <= MESH_PATHS_MAX && path < num ? 8 + 232 : -EPROTO);
			/* A life that is not its first one: perhaps of a path that joins late. */
			frame.connect.epoch = 1;
			assert_int_equal(mesh_frame_decode(&frame, size, &got),
					 num <= MESH_PATHS_MAX && path < MESH_PATHS_MAX ? 8 + 232
											: -EPROTO);
		}
	}
}

static int frame_decode_as(struct mesh_frame *frame, enum mesh_frame_type type)
{
	struct mesh_frame got;
	size_t size = mesh_frame_finish(frame, type);
	int ret = decode_exact(frame, size, &got);

	return ret == (int)size ? 0 : ret;
}

/* A frame of this type with this one change. */
#define DECODES(type, change, wanted)                                                              \
	do {                                                                                       \
		valid_init(&frame, type);                                                          \
		change;                                                                            \
		assert_int_equal(frame_decode_as(&frame, type), wanted);                           \
	} while (0)

/* A route has 1 to 15 relays, none twice, and names one of them. */
TEST(open_route)
{
	struct mesh_frame frame;

	open_init(&frame);
	frame_round_trip(&frame, MESH_FRAME_OPEN, 8 + 480);
	for (unsigned int num = 0; num < 20; num++) {
		for (unsigned int at = 0; at < 20; at++) {
			open_init(&frame);
			for (unsigned int i = 0; i < MESH_RELAYS_MAX; i++)
				frame.open.route[i] = i + 1;
			frame.open.num_relays = (uint8_t)num;
			frame.open.at = (uint8_t)at;
			assert_int_equal(frame_decode_as(&frame, MESH_FRAME_OPEN),
					 num <= MESH_RELAYS_MAX && at < num ? 0 : -EPROTO);
		}
	}
	DECODES(MESH_FRAME_OPEN, frame.open.route[1] = frame.open.route[0], -EPROTO);
	DECODES(MESH_FRAME_OPEN, frame.open.num_paths = MESH_PATHS_MAX + 1, -EPROTO);
	DECODES(MESH_FRAME_OPEN, memset(frame.open.via, 'x', sizeof(frame.open.via)), -EPROTO);
	DECODES(MESH_FRAME_OPEN, memset(frame.open.origin, 'x', sizeof(frame.open.origin)),
		-EPROTO);
}

/* The relay's memory is not empty, and its size does not wrap. */
TEST(opened)
{
	struct mesh_frame frame;

	ROUND_TRIP(frame.opened = ((struct mesh_frame_opened){
			   .to_comm = 1, .granule = 4096, .via = "b,c"}),
		   MESH_FRAME_OPENED, 168);
	DECODES(MESH_FRAME_OPENED, frame.opened.granule = 0, -EPROTO);
	DECODES(MESH_FRAME_OPENED, frame.opened.granule = 65536, 0);
	DECODES(MESH_FRAME_OPENED, frame.opened.granule = UINT32_MAX / MESH_GRANULES, 0);
	DECODES(MESH_FRAME_OPENED, frame.opened.granule = UINT32_MAX / MESH_GRANULES + 1, -EPROTO);
	DECODES(MESH_FRAME_OPENED, frame.opened.granule = UINT32_MAX, -EPROTO);
	DECODES(MESH_FRAME_OPENED, memset(frame.opened.via, 'x', sizeof(frame.opened.via)),
		-EPROTO);
}

TEST(circuit)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit = (struct mesh_frame_circuit){1, MESH_CIRCUIT_LOST, 2, 0, "c", "b", 3, 4, 0};
	frame_round_trip(&frame, MESH_FRAME_CIRCUIT, 8 + 168);
	for (uint32_t event = 0; event < 10; event++) {
		frame.circuit.event = event;
		assert_int_equal(frame_decode_as(&frame, MESH_FRAME_CIRCUIT),
				 event && event < MESH_CIRCUIT_EVENTS ? 0 : -EPROTO);
	}
	frame.circuit.event = MESH_CIRCUIT_SHUT;
	memset(frame.circuit.by, 'x', sizeof(frame.circuit.by));
	assert_int_equal(frame_decode_as(&frame, MESH_FRAME_CIRCUIT), -EPROTO);
}

TEST(refusals)
{
	for (unsigned int a = 0; a < 10; a++) {
		assert_true(strlen(mesh_refusal_text((enum mesh_refusal)a)) > 10);
		for (unsigned int b = MESH_REFUSAL_VERSION; b <= MESH_REFUSAL_NO_WRITES && b < a;
		     b++)
			assert_string_not_equal(mesh_refusal_text((enum mesh_refusal)a),
						mesh_refusal_text((enum mesh_refusal)b));
	}
}
