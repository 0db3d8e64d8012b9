/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_wire.c - frames between `fi_mesh check --peer` and `fi_mesh serve`. */
#include "peer/wire.h"

#include "unit.h"

static struct mesh_check_frame frame, decoded;
static uint8_t bytes[sizeof(frame) + MESH_CHECK_PAYLOAD_MAX];

static size_t finish(enum mesh_check_type type)
{
	size_t size = mesh_check_finish(&frame, type, 7);

	memcpy(bytes, &frame.header, sizeof(frame.header));
	memcpy(bytes + sizeof(frame.header), &frame.hello, size - sizeof(frame.header));
	return size;
}

void tests_setup(void)
{
	memset(&frame, 0, sizeof(frame));
}

static void nic_fill(struct mesh_check_nic *nic)
{
	nic->family = 4;
	nic->prefix_len = 24;
	nic->provider = MESH_PROVIDER_TCP;
	nic->mtu = 9000;
	memcpy(nic->addr, (uint8_t[]){10, 1, 0, 2}, 4);
	strcpy(nic->netdev, "ba");
}

TEST(hello)
{
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;
	size_t size, part;

	strcpy(frame.hello.node, "b");
	strcpy(frame.hello.site, "hall\t2");
	frame.hello.num_nics = 2;
	nic_fill(&frame.hello.nics[0]);
	nic_fill(&frame.hello.nics[1]);
	strcpy(frame.hello.nics[1].netdev, "a\n");
	size = finish(MESH_CHECK_HELLO);
	assert_int_equal(size, 16 + 96 + 2 * 48);
	for (part = 0; part < size; part++)
		assert_int_equal(mesh_check_decode(bytes, part, &decoded), 0);
	assert_int_equal(mesh_check_decode(bytes, sizeof(bytes), &decoded), size);
	assert_int_equal(decoded.header.number, 7);
	assert_string_equal(decoded.hello.node, "b");
	assert_string_equal(decoded.hello.site, "hall?2");
	assert_string_equal(decoded.hello.nics[1].netdev, "a?");
	mesh_check_nic_addr(&decoded.hello.nics[1], &addr);
	assert_string_equal(mesh_addr_text_prefix(&addr, text), "10.1.0.2/24");
}

/* The value at @offset makes the frame bad; without it it is good. */
static void assert_refused(size_t size, size_t offset, uint8_t value, int error)
{
	uint8_t old = bytes[offset];

	assert_int_equal(mesh_check_decode(bytes, size, &decoded), size);
	bytes[offset] = value;
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), error);
	bytes[offset] = old;
}

TEST(refused)
{
	const size_t hello = sizeof(struct mesh_check_header);
	const size_t nic = hello + offsetof(struct mesh_check_hello, nics);
	size_t size;

	frame.hello.num_nics = 1;
	nic_fill(&frame.hello.nics[0]);
	size = finish(MESH_CHECK_HELLO);
	assert_refused(size, 0, 0, -EPROTO);
	assert_refused(size, offsetof(struct mesh_check_header, version), 9, -EPROTONOSUPPORT);
	assert_refused(size, offsetof(struct mesh_check_header, type), 0, -EPROTO);
	assert_refused(size, offsetof(struct mesh_check_header, type), MESH_CHECK_TYPES, -EPROTO);
	assert_refused(size, offsetof(struct mesh_check_header, length) + 3, 1, -EPROTO);
	assert_refused(size, hello + offsetof(struct mesh_check_hello, num_nics), 0, -EPROTO);
	assert_refused(size, hello + offsetof(struct mesh_check_hello, num_nics), 17, -EPROTO);
	assert_refused(size, nic, 5, -EPROTO);
	assert_refused(size, nic + 1, 33, -EPROTO);
	assert_refused(size, nic + 2, MESH_PROVIDER_ID_MAX + 1, -EPROTO);
	assert_refused(size, nic + 3, 2, -EPROTO);
	assert_refused(size, nic + offsetof(struct mesh_check_nic, netdev), 0, -EPROTO);
	memset(bytes + hello + offsetof(struct mesh_check_hello, site), 'x', MESH_SITE_NAME_MAX);
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), -EPROTO);
	memset(bytes + hello + offsetof(struct mesh_check_hello, site), 0, MESH_SITE_NAME_MAX);
	memset(bytes + hello + offsetof(struct mesh_check_hello, node), 'x', MESH_NODE_NAME_MAX);
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), -EPROTO);
}

/* Of version 1, which had no site. */
#define OLD_HELLO_BYTES 80

/* A HELLO of version 1, and an ERROR of any version. */
TEST(other_versions)
{
	size_t size;

	mesh_check_header_fill(&frame.header, MESH_CHECK_HELLO, 7, OLD_HELLO_BYTES);
	frame.header.version = 1;
	memcpy(bytes, &frame.header, sizeof(frame.header));
	memset(bytes + sizeof(frame.header), 0, OLD_HELLO_BYTES);
	size = sizeof(frame.header) + OLD_HELLO_BYTES;
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), -EPROTONOSUPPORT);
	assert_int_equal(mesh_check_version_of(bytes, size), 1);
	assert_int_equal(mesh_check_version_of(bytes, sizeof(frame.header) - 1), 0);
	/* The same bytes as one of ours are too short. */
	bytes[offsetof(struct mesh_check_header, version)] = MESH_CHECK_VERSION;
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), -EPROTO);
	bytes[0] ^= 1;
	assert_int_equal(mesh_check_version_of(bytes, size), 0);
	strcpy(frame.error.text, "why");
	frame.error.error = EPROTONOSUPPORT;
	size = finish(MESH_CHECK_ERROR);
	bytes[offsetof(struct mesh_check_header, version)] = 9;
	assert_int_equal(mesh_check_decode(bytes, size, &decoded), size);
	assert_string_equal(decoded.error.text, "why");
}

/* A frame with this body only is read, or refused. */
#define DECODES(body, type, wanted)                                                                \
	do {                                                                                       \
		int ret;                                                                           \
                                                                                                   \
		memset(&frame, 0, sizeof(frame));                                                  \
		body;                                                                              \
		ret = mesh_check_decode(bytes, finish(type), &decoded);                            \
		assert_int_equal(ret > 0 ? 0 : ret, wanted);                                       \
	} while (0)

TEST(runs_are_bounded)
{
	DECODES(frame.measure.ms = MESH_CHECK_RUN_MS_MAX, MESH_CHECK_MEASURE_RUN, 0);
	DECODES(frame.measure.ms = MESH_CHECK_RUN_MS_MAX + 1, MESH_CHECK_MEASURE_RUN, -EPROTO);
	memset(&frame, 0, sizeof(frame));
	frame.measure.ms = MESH_CHECK_RUN_MS_MAX;
	frame.measure.handle[MESH_HANDLE_BYTES - 1] = 0xa5;
	assert_int_equal(mesh_check_decode(bytes, finish(MESH_CHECK_MEASURE_RUN), &decoded),
			 16 + 168);
	assert_int_equal(decoded.measure.handle[MESH_HANDLE_BYTES - 1], 0xa5);
}

TEST(error_without_an_end)
{
	memset(&frame, 0, sizeof(frame));
	memset(frame.error.text, 'x', sizeof(frame.error.text));
	assert_int_equal(mesh_check_decode(bytes, finish(MESH_CHECK_ERROR), &decoded), -EPROTO);
}

/* Untrusted text is printed on root's terminal. */
TEST(texts_are_printable)
{
	memset(&frame, 0, sizeof(frame));
	strcpy(frame.error.text, "no\n\x1b[2J\xff");
	assert_true(mesh_check_decode(bytes, finish(MESH_CHECK_ERROR), &decoded) > 0);
	assert_string_equal(decoded.error.text, "no??[2J?");
}

TEST(datagrams)
{
	struct mesh_check_probe probe = {.magic = MESH_CHECK_PROBE_MAGIC, .id = 5}, seen;

	assert_int_equal(mesh_check_probe_decode(&probe, sizeof(probe), &seen), 0);
	assert_int_equal(seen.id, 5);
	assert_int_equal(mesh_check_probe_decode(&probe, sizeof(probe) - 1, &seen), -EPROTO);
	probe.magic = 0;
	assert_int_equal(mesh_check_probe_decode(&probe, sizeof(probe), &seen), -EPROTO);
}
