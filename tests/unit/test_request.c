/* SPDX-License-Identifier: Apache-2.0 */
/* test_request.c - requests and registrations: what is refused, and what a failure spares. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)
/* A message, with its header, that is injected at most (comm.c). */
#define INJECT_MAX 256

static char memory[LARGE];
static struct mesh_comm *comm;
static struct mesh_registration *registration;

static void opened(bool sending)
{
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	comm = fixture_comm_open(sending);
	registration = fixture_register(comm, memory, sizeof(memory));
}

static int sent(const void *data, size_t size, struct mesh_registration *of)
{
	struct mesh_request *request = (struct mesh_request *)memory;
	int ret = mesh_comm_send(comm, data, size, of, &request);

	assert_true(!ret == (request != NULL));
	return ret;
}

static void test_wrong_direction(void **state)
{
	struct mesh_request *request;

	(void)state;
	opened(true);
	assert_int_equal(mesh_comm_receive(comm, memory, 8, registration, &request), -EINVAL);
	assert_null(request);
	assert_true(log_captured(MESH_LOG_WARN, "irecv was called on a connection that sends"));
	fixture_comm_close(comm);
}

static void test_memory_that_is_not_registered(void **state)
{
	struct mesh_registration *part;

	(void)state;
	opened(true);
	part = fixture_register(comm, memory + 100, 50);
	assert_int_equal(sent(memory + 100, 50, part), 0);
	assert_int_equal(sent(memory + 149, 1, part), 0);
	assert_int_equal(sent(memory + 99, 1, part), -EINVAL);
	assert_int_equal(sent(memory + 100, 51, part), -EINVAL);
	assert_int_equal(sent(memory + 101, 50, part), -EINVAL);
	assert_int_equal(sent(memory + 150, 1, part), -EINVAL);
	assert_int_equal(sent(memory + 150, (size_t)-1, part), -EINVAL);
	assert_int_equal(sent(memory, 1, NULL), -EINVAL);
	assert_int_equal(sent(NULL, 0, NULL), 0); /* nothing is read */
	assert_true(log_captured(MESH_LOG_WARN, "outside its registered memory"));
	fixture_comm_close(comm);
}

/* NCCL's largest message, and a receive that has more room than that. */
static void test_largest_message(void **state)
{
	struct mesh_registration *whole;
	struct mesh_request *request;

	(void)state;
	opened(true);
	whole = fixture_register(comm, memory, 2 * MESH_MESSAGE_MAX);
	assert_int_equal(sent(memory, MESH_MESSAGE_MAX, whole), 0);
	assert_int_equal(sent(memory, MESH_MESSAGE_MAX + 1, whole), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "is larger than the largest"));
	fixture_comm_close(comm);
	fixture.peers[0].state = MESH_PEER_UP;
	comm = fixture_comm_open(false);
	whole = fixture_register(comm, memory, 2 * MESH_MESSAGE_MAX);
	assert_int_equal(mesh_comm_receive(comm, memory, MESH_MESSAGE_MAX + 1, whole, &request), 0);
	assert_non_null(request);
	fixture_comm_close(comm);
}

static void test_no_more_than_32(void **state)
{
	struct mesh_request *request;
	int i;

	(void)state;
	opened(false);
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		assert_int_equal(mesh_comm_receive(comm, memory, 8, registration, &request), 0);
		assert_non_null(request);
	}
	assert_int_equal(mesh_comm_receive(comm, memory, 8, registration, &request), 0);
	assert_null(request);
	assert_int_equal(comm->requests[0].seq, 0);
	fixture_comm_close(comm);
}

/* What was done before the comm failed counts; and whoever asks keeps the engine awake. */
static void test_failure_spares_what_was_done(void **state)
{
	struct mesh_request *first, *second;
	bool done = false;
	size_t size = 0;

	(void)state;
	opened(false);
	mesh_comm_receive(comm, memory, SMALL, registration, &first);
	mesh_comm_receive(comm, memory, SMALL, registration, &second);
	fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, memory + SMALL, 10);
	atomic_store(&fixture.node.engine.awake, false);
	mesh_lock_take(&comm->lock);
	mesh_comm_fail(comm, -EPIPE, false, "the first reason");
	mesh_comm_fail(comm, -EIO, false, "another reason");
	mesh_lock_release(&comm->lock);
	assert_failed(comm, -EPIPE, "node b over eth7: the first reason");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(fixture.node.own_counters.comms_opened, 1);
	assert_int_equal(fixture.node.own_counters.comms_failed, 1);
	assert_int_equal(mesh_request_test(first, &done, &size), 0);
	assert_true(done);
	assert_int_equal(size, 10);
	assert_true(atomic_load(&fixture.node.engine.awake));
	assert_int_equal(mesh_request_test(second, &done, &size), -EPIPE);
	assert_false(done);
	assert_int_equal(first->state, MESH_REQUEST_FREE);
	fixture_comm_close(comm);
}

/* A failure that is no news, and a peer whose loss was told, count differently. */
static void test_quiet_failures(void **state)
{
	(void)state;
	opened(false);
	comm->peer_end = MESH_END_CLOSING;
	mesh_lock_take(&fixture.node.lock);
	mesh_comm_peer_lost(comm);
	mesh_lock_release(&fixture.node.lock);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_int_equal(fixture.node.own_counters.comms_failed, 1);
	assert_int_equal(comm->peer_end, MESH_END_UNCLEAN);
	assert_false(mesh_comm_peer_asks(comm));
	fixture_comm_close(comm);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* The provider copies what is short, and no more than our own copy holds. */
static void test_injected(void **state)
{
	const size_t most = INJECT_MAX - sizeof(struct mesh_message_header);

	(void)state;
	fake.inject_size = 4096;
	opened(true);
	assert_int_equal(sent(memory, most, registration), 0);
	assert_int_equal(fake.injects.num, 1);
	assert_int_equal(fake.injects.posts[0].size, INJECT_MAX);
	assert_int_equal(comm->requests[0].state, MESH_REQUEST_DONE);
	assert_int_equal(comm->paths[0].counters->small, 1);
	assert_int_equal(sent(memory, most + 1, registration), 0);
	assert_int_equal(fake.injects.num, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
	fixture_comm_close(comm);
}

/* Without a buffer it waits for the next poll. */
static void test_no_buffer(void **state)
{
	struct mesh_buffer *buffer, *taken[512];
	int num = 0;

	(void)state;
	opened(true);
	while ((buffer = mesh_remote_buffer_get(fixture.domains[0], fixture.peers[0].remote)))
		taken[num++] = buffer;
	assert_int_equal(sent(memory, SMALL, registration), 0);
	assert_int_equal(fake.sends.num, 0);
	assert_int_equal(comm->paths[0].counters->busy, 1);
	while (num)
		mesh_buffer_put(taken[--num]);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
	fixture_comm_close(comm);
}

/*
 * NCCL's own transports report an error in test, and not in isend or irecv. When all requests are
 * taken, "later" would be for ever: then the call itself fails.
 */
static void test_requests_of_a_failed_comm(void **state)
{
	struct mesh_request *request = NULL;
	int sending, i, ret = 0;

	for (sending = 0; sending < 2; sending++) {
		assert_int_equal(fixture_setup(state), 0);
		opened(sending);
		mesh_lock_take(&comm->lock);
		mesh_comm_fail(comm, -EPIPE, true, NULL);
		mesh_lock_release(&comm->lock);
		for (i = 0; i <= MESH_COMM_REQUESTS; i++) {
			if (sending)
				ret = mesh_comm_send(comm, memory, SMALL, registration, &request);
			else
				ret = mesh_comm_receive(comm, memory, SMALL, registration,
							&request);
			if (i == MESH_COMM_REQUESTS)
				break;
			assert_int_equal(ret, 0);
			fixture_request_fails(request, -EPIPE);
			fixture_request_fails(request, -EPIPE); /* some versions ask again */
		}
		assert_int_equal(ret, -EPIPE);
		assert_null(request);
		assert_int_equal(fake.sends.num, 0);
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* ---- registrations --------------------------------------------------------------------------- */

/* One in each path's domain, or none at all; nothing for nothing. */
static void test_registrations_of_all_paths(void **state)
{
	struct mesh_registration *failed = NULL;
	int before;

	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	comm = fixture_comm_open(true);
	before = fake.open[FAKE_MR];
	fixture_register(comm, NULL, 0);
	assert_int_equal(fake.open[FAKE_MR], before);
	fake_fail(FAKE_MR, 1, 1, -FI_ENOMEM);
	assert_int_equal(mesh_registration_open(comm, memory, 100, &failed), -ENOMEM);
	assert_null(failed);
	assert_int_equal(fake.open[FAKE_MR], before);
	fixture_register(comm, memory, 100); /* NCCL leaves it: closing ends it */
	assert_int_equal(fake.open[FAKE_MR], before + 2);
	fixture_comm_close(comm);
	assert_int_equal(fake.open[FAKE_MR], before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wrong_direction),
		TEST(test_memory_that_is_not_registered),
		TEST(test_largest_message),
		TEST(test_no_more_than_32),
		TEST(test_failure_spares_what_was_done),
		TEST(test_quiet_failures),
		TEST(test_injected),
		TEST(test_no_buffer),
		cmocka_unit_test(test_requests_of_a_failed_comm),
		TEST(test_registrations_of_all_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
