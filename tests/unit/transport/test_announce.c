/* SPDX-License-Identifier: Apache-2.0 */
/* test_announce.c - how a sending comm announces its writes: immediates, and messages behind. */
#include <rdma/fi_errno.h>

#include "transport/data.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define LARGE ((size_t)64 << 10)

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

/* A comm over @provider whose first message, of @size bytes, is granted @room. */
static struct mesh_request *message_start(enum mesh_provider_id provider, size_t size,
					  uint64_t room)
{
	struct mesh_request *request;

	comm = fixture_open(provider, 1, true);
	request = fixture_post(comm, size);
	fixture_grant(comm, 0, 1, room);
	return request;
}

static struct mesh_message_written written_last(struct mesh_message_header *header)
{
	struct mesh_message_written written;
	const void *payload;

	*header = fixture_last_sent(MESH_MESSAGE_WRITTEN, &payload);
	memcpy(&written, payload, sizeof(written));
	return written;
}

/* An immediate where it has room for all: with 64 bits always, with 32 if the grant is filled. */
TEST_BARE(each_provider)
{
	static const struct {
		enum mesh_provider_id provider;
		size_t cq_data_size;
		uint64_t room;
		bool message;
		uint32_t in_immediate;
	} cases[] = {
		{MESH_PROVIDER_TCP, 8, LARGE, false, LARGE},
		{MESH_PROVIDER_TCP, 8, LARGE + 1, false, LARGE},
		{MESH_PROVIDER_VERBS_RXM, 4, LARGE, false, 0},
		{MESH_PROVIDER_VERBS_RXM, 4, LARGE + 1, true, 0},
		{MESH_PROVIDER_TCP_RXM, 8, LARGE, true, 0},
		{MESH_PROVIDER_TCP_RXM, 8, LARGE + 1, true, 0},
	};
	struct mesh_message_written written;
	struct mesh_message_header header;

	FOR_EACH(i, cases) {
		const struct fake_post *write = &fake.writes.posts[0];

		fixture_setup();
		fake.cq_data_size = cases[i].cq_data_size;
		message_start(cases[i].provider, LARGE, cases[i].room);
		assert_int_equal(fake.writes.num, 1);
		assert_int_equal(write->size, LARGE);
		assert_int_equal(!(write->flags & FI_REMOTE_CQ_DATA), cases[i].message);
		assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), cases[i].message);
		if (cases[i].message) {
			written = written_last(&header);
			assert_int_equal(header.comm, FIXTURE_REMOTE_ID);
			assert_int_equal(header.token, FIXTURE_REMOTE_TOKEN);
			assert_int_equal(header.size, LARGE);
			assert_int_equal(written.segment, 0);
			assert_int_equal(written.num_segments, 1);
		} else {
			assert_int_equal(mesh_immediate_decode(write->data).size,
					 cases[i].in_immediate);
		}
		fixture_writes_complete(1);
		fixture_teardown();
	}
}

/* Fills the message with lines whose last 8 bytes are @flag; a GPU polls them (data.h). */
static void lines_fill(size_t size, uint64_t flag)
{
	memset(fixture_memory, 0x5a, size);
	for (size_t at = MESH_LINE_BYTES - sizeof(flag); at < size; at += MESH_LINE_BYTES)
		memcpy(fixture_memory + at, &flag, sizeof(flag));
}

/*
 * A message with flags leaves them out where its bytes may arrive in any order: each write is one
 * of a copy, and WRITTEN has the flag. A NIC that places writes in order gets them as they are.
 */
TEST_BARE(flags_follow)
{
	static const struct {
		enum mesh_provider_id provider;
		int writes;
	} cases[] = {
		{MESH_PROVIDER_TCP, 8},
		{MESH_PROVIDER_TCP_RXM, 8},
		{MESH_PROVIDER_VERBS_RXM, 1},
	};
	struct mesh_message_written written;
	struct mesh_message_header header;
	const uint64_t none = 0;

	FOR_EACH(i, cases) {
		fixture_setup();
		fake.cq_data_size = i < 2 ? 8 : 4;
		lines_fill(LARGE, 7);
		message_start(cases[i].provider, LARGE, 2 * LARGE);
		assert_int_equal(fake.writes.num, cases[i].writes);
		assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), cases[i].writes);
		written = written_last(&header);
		assert_int_equal(written.flag, i < 2 ? 7 : 0);
		for (int j = 0; j < cases[i].writes && i < 2; j++) {
			const struct fake_post *write = &fake.writes.posts[j];
			const char *bytes = (const char *)write->buffer;

			assert_int_equal(write->size, LARGE / 8);
			assert_true(write->flags & FI_DELIVERY_COMPLETE);
			assert_memory_equal(bytes, fixture_memory, MESH_LINE_BYTES - 8);
			assert_memory_equal(bytes + write->size - 8, &none, 8);
		}
		fixture_writes_complete(cases[i].writes);
		fixture_teardown();
	}
	memset(fixture_memory, 0, LARGE);
}

/* Each message names its segment and how many there are; the paths may differ. */
TEST(segments)
{
	struct mesh_message_written written;
	struct mesh_message_header header;
	int i, behind = 0;

	fake.cq_data_size = 4;
	fixture_paths_open(MESH_PROVIDER_VERBS_RXM, 2);
	fixture.domains[1]->immediate_bits = 64;
	comm = fixture_comm_open(true);
	fixture_post(comm, 4 * LARGE);
	fixture_grant(comm, 0, 1, 5 * LARGE);
	assert_int_equal(fake.writes.num, 4);
	for (i = 0; i < 4; i++) {
		bool first = fake.writes.posts[i].domain == fixture.domains[0]->domain;

		behind += first;
		assert_int_equal(!(fake.writes.posts[i].flags & FI_REMOTE_CQ_DATA), first);
	}
	assert_true(behind && behind < 4);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), behind);
	written = written_last(&header);
	assert_int_equal(header.size, 4 * LARGE);
	assert_int_equal(written.num_segments, 4);
	fixture_writes_complete(4);
}

/* The message is an operation of the request. If it fails, it is announced again. */
TEST(message_fails)
{
	struct mesh_request *request = message_start(MESH_PROVIDER_TCP_RXM, LARGE, LARGE);

	fixture_writes_complete(1);
	assert_false(fixture_is_done(request));
	fake_complete_error(fake.sends.posts[fixture.sends_completed++].context, FI_ECONNRESET);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm_path(comm, 0).state, MESH_PATH_SUSPECT);
	assert_true(fixture_is_done(request));
	assert_int_equal(comm_path(comm, 0).counters->errors, 1);
}

/* Both have to complete, in whichever order. */
TEST(message_completes)
{
	struct mesh_request *request = message_start(MESH_PROVIDER_TCP_RXM, LARGE, LARGE);

	fixture_sends_complete();
	assert_false(fixture_is_done(request));
	fixture_writes_complete(1);
	assert_true(fixture_is_done(request));
}

/* What is not accepted directly behind its write leaves after the write has completed. */
TEST(message_waits_for_its_write)
{
	struct mesh_request *request;

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	request = message_start(MESH_PROVIDER_TCP_RXM, LARGE, LARGE);
	assert_int_equal(fake.writes.num, 1);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 0);
	fixture_writes_complete(1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 1);
	assert_false(fixture_is_done(request));
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
}

/* A write that fails is never announced. */
TEST(write_fails_before_its_message)
{
	struct mesh_request *request;

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	request = message_start(MESH_PROVIDER_TCP_RXM, LARGE, LARGE);
	fake_complete_error(fake.writes.posts[fixture.writes_completed++].context, FI_EIO);
	fixture_poll();
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 0);
	assert_false(fixture_is_done(request)); /* it is in doubt */
}

/* While other messages wait for the provider, a write that a message follows does not start. */
TEST(backlog_goes_first)
{
	struct mesh_request *small, *large;

	comm = fixture_open(MESH_PROVIDER_TCP_RXM, 1, true);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	small = fixture_post(comm, FIXTURE_EAGER_LIMIT);
	large = fixture_post(comm, LARGE);
	fixture_grant(comm, 1, 1, LARGE);
	assert_int_equal(fake.writes.num, 0);
	fixture_poll();
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 1);
	fixture_writes_complete(1);
	fixture_sends_complete();
	assert_true(fixture_is_done(small));
	assert_true(fixture_is_done(large));
}

/* Attempts that fail keep no buffer. */
TEST(busy_writes)
{
	struct mesh_request *request;

	fake_fail(FAKE_WRITE, 0, 1000, -FI_EAGAIN);
	request = message_start(MESH_PROVIDER_TCP_RXM, LARGE, LARGE);
	for (int i = 0; i < 1000; i++)
		fixture_poll();
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 1);
	fixture_writes_complete(1);
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
}

/* Without a buffer for the message the write does not start; the next poll tries again. */
TEST(no_buffer)
{
	struct mesh_buffer *buffers[600];
	int i = 0;

	fixture_paths_open(MESH_PROVIDER_TCP_RXM, 1);
	comm = fixture_comm_open(true);
	while ((buffers[i] = mesh_remote_buffer_get(fixture.domains[0], fixture.peers[0].remote)))
		i++;
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.on[FAKE_WRITE].calls, 0);
	while (i)
		mesh_buffer_put(buffers[--i]);
	fixture_poll();
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 1);
	fixture_writes_complete(1);
}

/* Larger than its receive: nothing is written, and the receiver learns the size, too. */
TEST(larger_than_its_receive)
{
	struct mesh_message_written written;
	struct mesh_message_header header;

	message_start(MESH_PROVIDER_TCP, LARGE, LARGE - 1);
	assert_failed(comm, -EMSGSIZE, "message 0 of 65536 bytes is larger than the receive");
	assert_int_equal(fake.writes.num, 0);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 1);
	written = written_last(&header);
	assert_int_equal(header.size, LARGE);
	assert_int_equal(written.num_segments, 0);
	assert_int_equal(*comm_inside(comm).writes_started, 0);
	/* Nothing starts on a comm that has failed. */
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.writes.num, 0);
	fixture_request_fails(fixture_post(comm, 8), -EMSGSIZE);
	assert_int_equal(fake.writes.num + fixture_sent(MESH_MESSAGE_DATA), 0);
}
