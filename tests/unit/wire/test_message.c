/* SPDX-License-Identifier: Apache-2.0 */
/* test_message.c - messages and immediates: whole ones are read, all others refused. */
#include "wire/message.h"

#include "unit.h"

/* Puts @length bytes behind a header; checks it in memory of exactly that size. */
static int message_check(struct mesh_message_header header, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	const struct mesh_message_header *got;
	int ret = -EPROTO;

	assert_non_null(bytes);
	memset(bytes, 0, size); /* a legal payload, if its length is */
	memcpy(bytes, &header, size < sizeof(header) ? size : sizeof(header));
	got = mesh_message_check(bytes, size);
	if (got) {
		assert_ptr_equal(got, bytes);
		ret = 0;
	}
	free(bytes);
	return ret;
}

TEST(messages)
{
	for (unsigned int type = 0; type < 256; type++) {
		for (unsigned int length = 0; length < 64; length++) {
			struct mesh_message_header header = {
				.type = (uint8_t)type, .length = length, .comm = 1};
			bool legal = type == MESH_MESSAGE_DATA ||
				     (type == MESH_MESSAGE_WRITTEN && length == 16) ||
				     (type == MESH_MESSAGE_ARRIVED && length == 8) ||
				     ((type == MESH_MESSAGE_GREET || type == MESH_MESSAGE_POSTED ||
				       type == MESH_MESSAGE_WANT) &&
				      length == 0);

			assert_int_equal(message_check(header, 24 + length), legal ? 0 : -EPROTO);
			/* Header and bytes must agree, one more or less is refused. */
			assert_int_equal(message_check(header, 24 + length + 1), -EPROTO);
			assert_int_equal(message_check(header, 24 + length - 1), -EPROTO);
		}
	}
}

/* A segment that the receiver has no bit for is refused here. */
TEST(written)
{
	static const struct {
		struct mesh_message_written written;
		bool legal;
	} cases[] = {
		{{0, 1, 0}, true},
		{{MESH_SEGMENTS_MAX - 1, MESH_SEGMENTS_MAX, 0}, true},
		{{0, 0, 0}, true}, /* nothing was written */
		{{1, 0, 0}, false},
		{{1, 1, 0}, false},
		{{0, MESH_SEGMENTS_MAX + 1, 0}, false},
		{{UINT32_MAX, UINT32_MAX, 0}, false},
	};
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_WRITTEN,
		.length = sizeof(struct mesh_message_written),
	};
	struct {
		struct mesh_message_header header;
		struct mesh_message_written written;
	} bytes;

	FOR_EACH(i, cases) {
		bytes.header = header;
		bytes.written = cases[i].written;
		assert_ptr_equal(mesh_message_check(&bytes, sizeof(bytes)),
				 cases[i].legal ? &bytes : NULL);
	}
}

/* 64 bits always say all, 32 only that the grant is filled. */
TEST(immediate_suffices)
{
	assert_true(mesh_immediate_suffices(64, false));
	assert_true(mesh_immediate_suffices(64, true));
	assert_false(mesh_immediate_suffices(32, false));
	assert_true(mesh_immediate_suffices(32, true));
	assert_false(mesh_immediate_suffices(0, true));
}

TEST(relayed)
{
	static const struct {
		struct mesh_message_relayed relayed;
		bool legal;
	} cases[] = {
		{{.length = 1, .num_segments = 1}, true},
		{{.length = UINT32_MAX,
		  .num_segments = MESH_SEGMENTS_MAX,
		  .segment = MESH_SEGMENTS_MAX - 1,
		  .granule = MESH_GRANULES - 1,
		  .full = 1},
		 true},
		{{.length = 0, .num_segments = 1}, false},
		{{.length = 1, .num_segments = 0}, false},
		{{.length = 1, .num_segments = 1, .segment = 1}, false},
		{{.length = 1, .num_segments = MESH_SEGMENTS_MAX + 1}, false},
		{{.length = 1, .num_segments = 1, .granule = MESH_GRANULES}, false},
		{{.length = 1, .num_segments = 1, .full = 2}, false},
		{{.length = 1, .num_segments = 1, .reserved = 0}, true},
		{{.length = 1, .num_segments = 1, .reserved = 1}, false},
	};
	struct {
		struct mesh_message_header header;
		struct mesh_message_relayed relayed;
	} bytes;

	FOR_EACH(i, cases) {
		memset(&bytes, 0, sizeof(bytes));
		bytes.header.type = MESH_MESSAGE_RELAYED;
		bytes.header.length = sizeof(bytes.relayed);
		bytes.relayed = cases[i].relayed;
		assert_int_equal(!!mesh_message_check(&bytes, sizeof(bytes)), cases[i].legal);
	}
}

TEST(grants)
{
	struct mesh_message_header header = {.type = MESH_MESSAGE_GRANT};

	for (unsigned int count = 0; count < 256; count++) {
		for (unsigned int paths = 0; paths < 256; paths += paths < 10 ? 1 : 49) {
			bool legal = count && count <= MESH_GRANTS_PER_MESSAGE && paths &&
				     paths <= MESH_PATHS_MAX;
			size_t length = count * (8 + paths * 16);

			header.count = (uint8_t)count;
			header.paths = (uint8_t)paths;
			header.length = (uint32_t)length;
			assert_int_equal(message_check(header, 24 + length), legal ? 0 : -EPROTO);
			header.length = (uint32_t)length + 8;
			assert_int_equal(message_check(header, 24 + length + 8), -EPROTO);
		}
	}
}

TEST(message_truncated)
{
	struct mesh_message_header header = {.type = MESH_MESSAGE_DATA, .length = 100};

	for (size_t size = 0; size < 24 + 100; size++)
		assert_int_equal(message_check(header, size), -EPROTO);
	assert_int_equal(message_check(header, 24 + 100), 0);
	header.length = UINT32_MAX;
	assert_int_equal(message_check(header, 24 + 100), -EPROTO);
	header.length = UINT32_MAX - 23; /* with the header it is 2^32 */
	assert_int_equal(message_check(header, 24), -EPROTO);
}

TEST(immediate_bits)
{
	struct mesh_immediate immediate = {0}, got;

	assert_int_equal(MESH_IMMEDIATE_COMM_BITS + MESH_IMMEDIATE_SEQ_BITS +
				 MESH_IMMEDIATE_SEGMENT_BITS + 1,
			 31);
	assert_int_equal(mesh_immediate_encode(&immediate), 0);
	immediate =
		(struct mesh_immediate){MESH_COMM_IDS - 1, 0x3f, MESH_SEGMENTS_MAX - 1, true, 0};
	assert_true(mesh_immediate_encode(&immediate) == 0xfffffffe);
	immediate.size = 0x12345678;
	assert_true(mesh_immediate_encode(&immediate) == 0x12345678fffffffe);
	/* Of the sequence number only the lowest bits travel. */
	immediate = (struct mesh_immediate){.seq = 0xffffff41};
	got = mesh_immediate_decode(mesh_immediate_encode(&immediate));
	assert_int_equal(got.seq, 1);
	assert_int_equal(got.comm, 0);
	assert_int_equal(got.segment, 0);
}

TEST(immediate_round_trip)
{
	uint64_t bits = 1;

	for (uint32_t i = 0; i < 200000; i++) {
		struct mesh_immediate decoded = mesh_immediate_decode(bits);

		assert_in_range(decoded.comm, 0, MESH_COMM_IDS - 1);
		assert_in_range(decoded.segment, 0, MESH_SEGMENTS_MAX - 1);
		assert_true(mesh_immediate_encode(&decoded) == (bits & ~1ull));
		bits = bits * 6364136223846793005u + 1442695040888963407u;
	}
}
