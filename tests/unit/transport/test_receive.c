/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_receive.c - what a receiving comm accepts of arriving messages, and what it does with them.
 */
#include "transport/data.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define SMALL ((size_t)64)

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

/* ---- large messages ------------------------------------------------------------------------ */

/* In any order, over both paths, and a segment that comes twice counts once. */
TEST(segments_are_counted)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	request = fixture_post(comm, ROOM);
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 3, .last = true, .size = 400});
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 0, .size = 400});
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 0, .size = 400});
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 2, .size = 400});
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 2, .size = 400});
	assert_int_equal(fixture_test(request), -1);
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 1, .size = 400});
	assert_int_equal(fixture_test(request), 400);
	assert_int_equal(comm_path(comm, 0).counters->segments, 3);
	assert_int_equal(comm_path(comm, 1).counters->segments, 1);
	assert_int_equal(comm_path(comm, 0).counters->bytes, 300);
	assert_int_equal(comm_path(comm, 1).counters->bytes, 100);
	assert_int_equal(comm_path(comm, 0).counters->messages, 1);
	assert_int_equal(comm_path(comm, 1).counters->messages, 0);
	assert_int_equal(*comm_inside(comm).writes_arrived,
			 6); /* those of the peer, to know when all are here */
}

/* A round later: nothing is left of what its slot had before. */
TEST(segments_of_the_next_round)
{
	struct mesh_request *request;
	uint32_t seq;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	for (seq = 0; seq <= MESH_COMM_REQUESTS; seq++) {
		request = fixture_post(comm, 1000);
		fixture_written(comm, 0,
				(struct mesh_immediate){.seq = seq, .segment = 0, .size = 1000});
		assert_int_equal(fixture_test(request), -1);
		fixture_written(comm, 1,
				(struct mesh_immediate){
					.seq = seq, .segment = 1, .last = true, .size = 1000});
		assert_int_equal(fixture_test(request), 1000);
	}
	assert_int_equal(comm_path(comm, 0).counters->bytes, 500 * (MESH_COMM_REQUESTS + 1));
	/* For a receive that is not granted, that is done, or of another round: dropped. */
	fixture_written(comm, 0, (struct mesh_immediate){.seq = seq, .last = true});
	fixture_written(comm, 0,
			(struct mesh_immediate){.seq = seq - 1, .segment = 7, .last = true});
	request = fixture_post(comm, 1000);
	fixture_written(comm, 0,
			(struct mesh_immediate){.seq = seq + MESH_COMM_REQUESTS, .last = true});
	assert_int_equal(fixture_test(request), -1);
	assert_int_equal(comm_path(comm, 0).counters->segments, MESH_COMM_REQUESTS + 1);
	fixture_written(comm, 0, (struct mesh_immediate){.seq = seq, .last = true});
	assert_int_equal(fixture_test(request), 1000);
}

/* A WRITTEN of a message of @size bytes. */
static void written(uint32_t seq, uint32_t segment, uint32_t num_segments, uint32_t size)
{
	const struct mesh_message_written payload = {segment, num_segments, 0};

	fixture_announce(comm, 0, seq, size, &payload);
}

/* The true size comes with the immediate, in a WRITTEN, or is the room itself. */
TEST(sizes)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	request = fixture_post(comm, 1000);
	fixture_written(comm, 0, (struct mesh_immediate){.seq = 0, .last = true});
	assert_int_equal(fixture_test(request), 1000);
	request = fixture_post(comm, 1000);
	fixture_written(comm, 0, (struct mesh_immediate){.seq = 1, .last = true, .size = 999});
	assert_int_equal(fixture_test(request), 999);
	request = fixture_post(comm, 1000);
	written(2, 0, 1, 777);
	assert_int_equal(fixture_test(request), 777);
	assert_int_equal(*comm_inside(comm).writes_arrived, 3);
	assert_int_equal(comm_path(comm, 0).counters->bytes, 1000 + 999 + 777);
}

/* Segments in any order, twice, and announced in both forms: each counts once. */
TEST(written)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, 1000);
	written(0, 0, 1, 10);
	request = fixture_post(comm, 1000);
	written(0, 0, 1, 5);			  /* the one before */
	written(2, 0, 1, 5);			  /* not posted */
	written(1 + MESH_COMM_REQUESTS, 0, 1, 5); /* of another round */
	written(1, 2, 3, 777);
	written(1, 2, 3, 777);
	fixture_written(comm, 0, (struct mesh_immediate){.seq = 1, .segment = 0, .size = 777});
	assert_int_equal(fixture_test(request), -1);
	written(1, 1, 3, 777);
	assert_int_equal(fixture_test(request), 777);
	assert_int_equal(comm_path(comm, 0).counters->segments, 4);
	assert_int_equal(*comm_inside(comm).writes_arrived, 8);
}

/* The last 8 bytes of a line of what has been received. */
static uint64_t flag_of_line(size_t line)
{
	uint64_t flag;

	memcpy(&flag, fixture_memory + line * 128 + 120, sizeof(flag));
	return flag;
}

/* Flags that the writes have left out are there when all of the message is, and not before. */
TEST(flags_come_last)
{
	const struct mesh_message_written first = {0, 2, 7}, second = {1, 2, 7}, only = {0, 1, 8};
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	request = fixture_post(comm, 1024);
	fixture_announce(comm, 0, 0, 512, &second);
	assert_int_equal(flag_of_line(0), 0);
	assert_int_equal(flag_of_line(3), 0);
	fixture_announce(comm, 0, 0, 512, &first);
	assert_int_equal(flag_of_line(0), 7);
	assert_int_equal(flag_of_line(3), 7);
	assert_int_equal(flag_of_line(4), 0); /* behind the message */
	assert_int_equal(fixture_memory[0], 0);
	assert_int_equal(fixture_test(request), 512);
	request = fixture_post(comm, 1024);
	fixture_announce(comm, 0, 1, 256, &only);
	assert_int_equal(flag_of_line(1), 8);
	assert_int_equal(flag_of_line(2), 7);
	assert_int_equal(fixture_test(request), 256);
}

/* In an immediate, in a WRITTEN, and in the one of a sender that has written nothing. */
TEST_BARE(size_beyond_the_receive)
{
	for (int i = 0; i < 3; i++) {
		fixture_setup();
		comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
		fixture_post(comm, 1000);
		if (i == 2)
			fixture_written(comm, 0,
					(struct mesh_immediate){.last = true, .size = 1001});
		else
			written(0, 0, (uint32_t)i, 1001);
		assert_failed(comm, -EMSGSIZE,
			      "message 0 of 1001 bytes is larger than the receive");
		assert_int_equal(*comm_inside(comm).writes_arrived, i != 0);
		fixture_teardown();
	}
}

/* ---- small messages ------------------------------------------------------------------------ */

TEST(small_messages)
{
	struct mesh_request *first, *second;

	for (size_t i = 0; i < sizeof(fixture.payload); i++)
		fixture.payload[i] = (char)(i * 7);
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	first = fixture_post(comm, SMALL);
	second = fixture_post(comm, SMALL);
	fixture_data(comm, 1, SMALL - 1);
	assert_int_equal(fixture_test(first), -1);
	assert_int_equal(fixture_test(second), SMALL - 1);
	assert_memory_equal(fixture_memory, fixture.payload, SMALL - 1);
	assert_int_equal(fixture_memory[SMALL - 1], 0);
	fixture.payload[0] ^= 1;
	fixture_data(comm, 1, SMALL - 1); /* twice */
	fixture.payload[0] ^= 1;
	assert_memory_equal(fixture_memory, fixture.payload, SMALL - 1);
	assert_int_equal(*comm_inside(comm).error, 0);
	fixture_data(comm, 0, 0);
	assert_int_equal(fixture_test(first), 0);
	assert_int_equal(comm_path(comm, 0).counters->messages, 3);
	assert_int_equal(comm_path(comm, 0).counters->small, 3);
	assert_int_equal(comm_path(comm, 0).counters->bytes, 2 * (SMALL - 1));
}

/* NCCL may have its memory back. */
TEST(small_message_while_closing)
{
	memset(fixture.payload, 1, SMALL);
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, SMALL);
	*comm_inside(comm).closing = true;
	fixture_data(comm, 0, SMALL);
	assert_int_equal(fixture_memory[0], 0);
	*comm_inside(comm).closing = false;
}

/* Only messages within the window are kept: nothing else is valid, whatever a peer sends. */
TEST(has_all)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (uint32_t seq = 0; seq < MESH_EAGER_WINDOW; seq++)
		fixture_data(comm, seq, SMALL);
	mesh_lock_take(comm_inside(comm).lock);
	assert_true(mesh_receive_has_all(comm, MESH_EAGER_WINDOW));
	assert_false(mesh_receive_has_all(comm, MESH_EAGER_WINDOW + 1));
	mesh_lock_release(comm_inside(comm).lock);
}

TEST(small_beyond_the_receive)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, SMALL);
	fixture_data(comm, 0, SMALL + 1);
	assert_failed(comm, -EMSGSIZE, "message 0 of 65 bytes is larger than the receive");
	assert_int_equal(fixture_memory[0], 0);
}

/* One that comes twice before its receive is posted is kept once, and says nothing new. */
TEST(early_message_twice)
{
	struct mesh_request *request;
	uint32_t run;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	fixture.payload[0] = 1;
	fixture_data(comm, 3, SMALL);
	run = *comm_inside(comm).eager_run;
	fixture.payload[0] = 2;
	fixture_data(comm, 3, SMALL);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(*comm_inside(comm).eager_run, run);
	do
		request = fixture_post(comm, SMALL);
	while (request->seq != 3);
	assert_int_equal(fixture_test(request), SMALL);
	assert_int_equal(fixture_memory[0], 1);
	fixture_data(comm, 3, SMALL);
	assert_int_equal(*comm_inside(comm).eager_run, run);
}

TEST(early_message_beyond_the_receive)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_data(comm, 0, SMALL + 1);
	fixture_post(comm, SMALL);
	assert_failed(comm, -EMSGSIZE, "is larger than the receive");
}

/* A peer that sends more than it has credit for, or a message that only a receiver sends. */
TEST_BARE(what_a_sender_must_not_do)
{
	for (int i = 0; i < 4; i++) {
		fixture_setup();
		fixture_paths_open(MESH_PROVIDER_TCP, 1);
		fixture.setup.process.config.eager_limit_bytes = SMALL;
		comm = fixture_comm_open(false);
		switch (i) {
		case 0:
			fixture_data(comm, MESH_EAGER_WINDOW, SMALL);
			assert_failed(comm, -EPROTO, "sent more than it was allowed to");
			break;
		case 1:
			fixture_data(comm, 3, SMALL);
			assert_int_equal(*comm_inside(comm).error, 0);
			fixture_data(comm, 3 + MESH_EAGER_WINDOW, SMALL);
			assert_failed(comm, -EPROTO, "sent more than it was allowed to");
			break;
		case 2: /* a path may have room for more than the setting */
			fixture_data(comm, 0, SMALL + 1);
			assert_failed(comm, -EPROTO, "sent more than it was allowed to");
			break;
		default:
			fixture_message(comm, 0, MESH_MESSAGE_POSTED, 1, NULL, 0);
			assert_failed(comm, -EPROTO, "a message of the wrong kind");
		}
		fixture_teardown();
	}
}

/* A message that arrived after a missing one is not delivered in its place. */
TEST(early_message_behind_a_hole)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_data(comm, 1, SMALL);
	fixture_fail(comm, -ECONNRESET);
	fixture_request_fails(fixture_post(comm, SMALL), -ECONNRESET);
	fixture_request_fails(fixture_post(comm, SMALL), -ECONNRESET);
}
