/* SPDX-License-Identifier: Apache-2.0 */
/* test_receive.c - what a receiving comm believes of what comes, and what it makes of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define SMALL ((size_t)64)

static char memory[ROOM], payload[ROOM];
static struct mesh_comm *comm;
static struct mesh_registration *registration;

static void receiver_open(enum mesh_provider_id provider, int num_paths)
{
	fixture_paths_open(provider, num_paths);
	comm = fixture_comm_open(false);
	registration = fixture_register(comm, memory, sizeof(memory));
	memset(memory, 0, sizeof(memory));
}

static struct mesh_request *post(size_t size)
{
	struct mesh_request *request = NULL;

	assert_int_equal(mesh_comm_receive(comm, memory, size, registration, &request), 0);
	assert_non_null(request);
	return request;
}

static void data(uint32_t seq, size_t size)
{
	fixture_message(comm, 0, MESH_MESSAGE_DATA, seq, payload, size);
}

/* The size of what has come; -1 if it has not. */
static int64_t received(struct mesh_request *request)
{
	size_t size = 0;
	bool done = false;

	assert_int_equal(mesh_request_test(request, &done, &size), 0);
	return done ? (int64_t)size : -1;
}

static struct mesh_counters *counters(int path)
{
	return comm->paths[path].counters;
}

/* ---- large messages ------------------------------------------------------------------------ */

struct arrival {
	uint32_t seq, segment;
	bool last, full;
	uint32_t size;
};

static void written(int path, struct arrival arrival)
{
	fixture_written(comm, path,
			(struct mesh_immediate){
				.seq = arrival.seq & 0x3f,
				.segment = arrival.segment,
				.last = arrival.last,
				.full = arrival.full,
				.size = arrival.size,
			});
}

/* In any order, over both paths, and a segment that comes twice counts once. */
static void test_segments_are_counted(void **state)
{
	struct mesh_request *request;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 2);
	request = post(ROOM);
	written(0, (struct arrival){.segment = 3, .last = true, .size = 400});
	written(1, (struct arrival){.segment = 0, .size = 400});
	written(1, (struct arrival){.segment = 0, .size = 400});
	written(0, (struct arrival){.segment = 2, .size = 400});
	written(0, (struct arrival){.segment = 2, .size = 400});
	assert_int_equal(received(request), -1);
	written(0, (struct arrival){.segment = 1, .size = 400});
	assert_int_equal(received(request), 400);
	assert_int_equal(counters(0)->segments, 3);
	assert_int_equal(counters(1)->segments, 1);
	assert_int_equal(counters(0)->bytes, 300);
	assert_int_equal(counters(1)->bytes, 100);
	assert_int_equal(counters(0)->messages, 1);
	assert_int_equal(counters(1)->messages, 0);
	assert_int_equal(comm->receive.writes,
			 6); /* those of the peer, to know when all are here */
	fixture_comm_close(comm);
}

/* A round later: nothing is left of what its slot had before. */
static void test_segments_of_the_next_round(void **state)
{
	struct mesh_request *request;
	uint32_t seq;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 2);
	for (seq = 0; seq <= MESH_COMM_REQUESTS; seq++) {
		request = post(1000);
		written(0, (struct arrival){.seq = seq, .segment = 0, .full = !seq, .size = 1000});
		assert_int_equal(received(request), -1);
		written(1, (struct arrival){.seq = seq, .segment = 1, .last = true, .size = 1000});
		assert_int_equal(received(request), 1000);
	}
	assert_int_equal(counters(0)->bytes, 500 * (MESH_COMM_REQUESTS + 1));
	/* For a receive that is not granted, that is done, or of another round: it is nobody's. */
	written(0, (struct arrival){.seq = seq, .last = true, .full = true});
	written(0, (struct arrival){.seq = seq - 1, .segment = 7, .last = true, .full = true});
	request = post(1000);
	written(0, (struct arrival){.seq = seq + MESH_COMM_REQUESTS, .last = true, .full = true});
	assert_int_equal(received(request), -1);
	assert_int_equal(counters(0)->segments, MESH_COMM_REQUESTS + 1);
	written(0, (struct arrival){.seq = seq, .last = true, .full = true});
	assert_int_equal(received(request), 1000);
	fixture_comm_close(comm);
}

/* Nor of its size: each message tells its own, smaller than the room for it. */
static void test_sizes_of_the_next_round(void **state)
{
	struct mesh_request *request;
	uint32_t seq;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	for (seq = 0; seq <= MESH_COMM_REQUESTS; seq++) {
		request = post(1000);
		written(0, (struct arrival){.seq = seq, .last = true, .size = 10 + seq});
		assert_int_equal(received(request), 10 + seq);
	}
	fixture_comm_close(comm);
}

/* The true size comes with the immediate, in a SIZE before or after, or is the room itself. */
static void test_sizes(void **state)
{
	const struct mesh_message_size size = {.size = 777}, other = {.size = 5};
	struct mesh_request *request;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	request = post(1000);
	written(0, (struct arrival){.seq = 0, .last = true, .full = true});
	assert_int_equal(received(request), 1000);
	request = post(1000);
	written(0, (struct arrival){.seq = 1, .last = true});
	assert_int_equal(received(request), -1);
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 1, &size, sizeof(size));
	assert_int_equal(received(request), 777);
	request = post(1000);
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 1, &other, sizeof(other)); /* the one before */
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 3, &other, sizeof(other)); /* not posted */
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 2 + MESH_COMM_REQUESTS, &other, sizeof(other));
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 2, &size, sizeof(size));
	fixture_message(comm, 0, MESH_MESSAGE_SIZE, 2, &other, sizeof(other)); /* once is enough */
	assert_int_equal(received(request), -1);
	written(0, (struct arrival){.seq = 2, .last = true});
	assert_int_equal(received(request), 777);
	fixture_comm_close(comm);
}

static void test_size_beyond_the_receive(void **state)
{
	const struct mesh_message_size size = {.size = 1001};
	int i;

	for (i = 0; i < 2; i++) {
		fixture_setup(state);
		receiver_open(MESH_PROVIDER_TCP, 1);
		post(1000);
		if (i)
			fixture_message(comm, 0, MESH_MESSAGE_SIZE, 0, &size, sizeof(size));
		else
			written(0, (struct arrival){.last = true, .size = 1001});
		assert_failed(comm, -EMSGSIZE,
			      "message 0 of 1001 bytes is larger than the receive");
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* ---- small messages ------------------------------------------------------------------------ */

static void test_small_messages(void **state)
{
	struct mesh_request *first, *second;
	size_t i;

	(void)state;
	for (i = 0; i < ROOM; i++)
		payload[i] = (char)(i * 7);
	receiver_open(MESH_PROVIDER_TCP, 1);
	first = post(SMALL);
	second = post(SMALL);
	data(1, SMALL - 1);
	assert_int_equal(received(first), -1);
	assert_int_equal(received(second), SMALL - 1);
	assert_memory_equal(memory, payload, SMALL - 1);
	assert_int_equal(memory[SMALL - 1], 0);
	payload[0] ^= 1;
	data(1, SMALL - 1); /* twice */
	payload[0] ^= 1;
	assert_memory_equal(memory, payload, SMALL - 1);
	assert_int_equal(atomic_load(&comm->error), 0);
	data(0, 0);
	assert_int_equal(received(first), 0);
	assert_int_equal(counters(0)->messages, 3);
	assert_int_equal(counters(0)->small, 3);
	assert_int_equal(counters(0)->bytes, 2 * (SMALL - 1));
	fixture_comm_close(comm);
}

/* One that comes twice, a round later, is not the one that is waited for now. */
static void test_small_message_of_another_round(void **state)
{
	struct mesh_request *request;
	uint32_t seq;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++) {
		request = post(SMALL);
		data(seq, SMALL);
		assert_int_equal(received(request), SMALL);
	}
	request = post(SMALL);
	data(0, SMALL);
	assert_int_equal(received(request), -1);
	data(MESH_COMM_REQUESTS, SMALL);
	assert_int_equal(received(request), SMALL);
	fixture_comm_close(comm);
}

/* NCCL may have its memory back. */
static void test_small_message_while_closing(void **state)
{
	(void)state;
	memset(payload, 1, SMALL);
	receiver_open(MESH_PROVIDER_TCP, 1);
	post(SMALL);
	comm->closing = true;
	data(0, SMALL);
	assert_int_equal(memory[0], 0);
	comm->closing = false;
	fixture_comm_close(comm);
}

/* Only what lies within the window is kept: nothing else has come, whatever a peer says. */
static void test_has_all(void **state)
{
	uint32_t seq;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	for (seq = 0; seq < MESH_EAGER_WINDOW; seq++)
		data(seq, SMALL);
	mesh_lock_take(&comm->lock);
	assert_true(mesh_receive_has_all(comm, MESH_EAGER_WINDOW));
	assert_false(mesh_receive_has_all(comm, MESH_EAGER_WINDOW + 1));
	mesh_lock_release(&comm->lock);
	fixture_comm_close(comm);
}

static void test_small_beyond_the_receive(void **state)
{
	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	post(SMALL);
	data(0, SMALL + 1);
	assert_failed(comm, -EMSGSIZE, "message 0 of 65 bytes is larger than the receive");
	assert_int_equal(memory[0], 0);
	fixture_comm_close(comm);
}

/* They wait for their receives, each in a place of its own. */
static void test_early_messages(void **state)
{
	struct mesh_request *request;
	uint32_t seq;
	int round;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	for (round = 0; round < 2; round++) {
		for (seq = 0; seq < MESH_EAGER_WINDOW; seq++) {
			memset(payload, (int)seq + 1, SMALL);
			data((uint32_t)round * MESH_EAGER_WINDOW + seq, SMALL - seq);
		}
		for (seq = 0; seq < MESH_EAGER_WINDOW; seq++) {
			memset(memory, 0xee, SMALL);
			request = post(SMALL);
			assert_int_equal(received(request), SMALL - seq);
			assert_int_equal(memory[SMALL - seq - 1], seq + 1);
			assert_int_equal(memory[0], seq + 1);
		}
	}
	request = post(SMALL);
	assert_int_equal(received(request), -1);
	assert_int_equal(atomic_load(&comm->error), 0);
	fixture_comm_close(comm);
}

static void test_early_message_beyond_the_receive(void **state)
{
	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	data(0, SMALL + 1);
	post(SMALL);
	assert_failed(comm, -EMSGSIZE, "is larger than the receive");
	fixture_comm_close(comm);
}

/* A peer that sends more than it was allowed to, or the same twice, or what is none of its own. */
static void test_what_a_sender_must_not_do(void **state)
{
	int i;

	for (i = 0; i < 3; i++) {
		fixture_setup(state);
		receiver_open(MESH_PROVIDER_TCP, 1);
		switch (i) {
		case 0:
			data(MESH_EAGER_WINDOW, SMALL);
			assert_failed(comm, -EPROTO, "sent more than it was allowed to");
			break;
		case 1:
			data(3, SMALL);
			assert_int_equal(atomic_load(&comm->error), 0);
			data(3, SMALL);
			assert_failed(comm, -EPROTO, "sent more than it was allowed to");
			break;
		default:
			fixture_message(comm, 0, MESH_MESSAGE_POSTED, 1, NULL, 0);
			assert_failed(comm, -EPROTO, "a message of the wrong kind");
		}
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* What came before the end is NCCL's all the same; what did not is the error's. */
static void test_early_message_after_the_end(void **state)
{
	struct mesh_request *request;

	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	data(0, SMALL);
	mesh_lock_take(&comm->lock);
	mesh_comm_fail(comm, -EPIPE, true, NULL);
	mesh_lock_release(&comm->lock);
	request = post(SMALL);
	assert_int_equal(received(request), SMALL);
	fixture_request_fails(post(SMALL), -EPIPE);
	fixture_comm_close(comm);
}

/* What came behind a message that never came is not passed off as that one, or in its place. */
static void test_early_message_behind_a_hole(void **state)
{
	(void)state;
	receiver_open(MESH_PROVIDER_TCP, 1);
	data(1, SMALL);
	mesh_lock_take(&comm->lock);
	mesh_comm_fail(comm, -ECONNRESET, true, NULL);
	mesh_lock_release(&comm->lock);
	fixture_request_fails(post(SMALL), -ECONNRESET);
	fixture_request_fails(post(SMALL), -ECONNRESET);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_segments_are_counted),
		TEST(test_segments_of_the_next_round),
		TEST(test_sizes_of_the_next_round),
		TEST(test_sizes),
		cmocka_unit_test(test_size_beyond_the_receive),
		TEST(test_small_messages),
		TEST(test_small_message_of_another_round),
		TEST(test_small_message_while_closing),
		TEST(test_has_all),
		TEST(test_small_beyond_the_receive),
		TEST(test_early_messages),
		TEST(test_early_message_beyond_the_receive),
		cmocka_unit_test(test_what_a_sender_must_not_do),
		TEST(test_early_message_after_the_end),
		TEST(test_early_message_behind_a_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
