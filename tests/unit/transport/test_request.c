/* SPDX-License-Identifier: Apache-2.0 */
/* test_request.c - requests and registrations: what is refused, and what a failure spares. */
#include <rdma/fi_errno.h>

#include "control/peer_life.h"
#include "transport/comm_life.h"
#include "transport/data.h"

#include "comm_fixture.h"
#include "log_capture.h"

TESTS_USE(fixture_setup, fixture_teardown);

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)
static struct mesh_comm *comm;

static int sent(const void *data, size_t size, struct mesh_registration *of)
{
	struct mesh_request *request = (struct mesh_request *)fixture_memory;
	int ret = mesh_comm_send(comm, data, size, of, &request);

	assert_true(ret || request);
	return ret;
}

TEST(wrong_direction)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	assert_int_equal(
		mesh_comm_receive(comm, fixture_memory, 8, fixture_registration(comm), &request),
		-EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "irecv was called on a connection that sends"));
}

TEST(memory_that_is_not_registered)
{
	struct mesh_registration *part;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	part = fixture_register(comm, fixture_memory + 100, 50);
	assert_int_equal(sent(fixture_memory + 100, 50, part), 0);
	assert_int_equal(sent(fixture_memory + 149, 1, part), 0);
	assert_int_equal(sent(fixture_memory + 99, 1, part), -EINVAL);
	assert_int_equal(sent(fixture_memory + 100, 51, part), -EINVAL);
	assert_int_equal(sent(fixture_memory + 101, 50, part), -EINVAL);
	assert_int_equal(sent(fixture_memory + 150, 1, part), -EINVAL);
	assert_int_equal(sent(fixture_memory + 150, (size_t)-1, part), -EINVAL);
	assert_int_equal(sent(fixture_memory, 1, NULL), -EINVAL);
	assert_int_equal(sent(NULL, 0, NULL), 0); /* nothing is read */
	assert_true(log_captured(MESH_LOG_WARN, "outside its registered memory"));
}

/* NCCL's largest message, and a receive that has more room than that. */
TEST(largest_message)
{
	struct mesh_registration *whole;
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	whole = fixture_register(comm, fixture_memory, 2 * MESH_MESSAGE_MAX);
	assert_int_equal(sent(fixture_memory, MESH_MESSAGE_MAX, whole), 0);
	assert_int_equal(sent(fixture_memory, MESH_MESSAGE_MAX + 1, whole), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "is larger than the largest"));
	fixture_comm_close(comm);
	fixture.peers[0].state = MESH_PEER_UP;
	comm = fixture_comm_open(false);
	whole = fixture_register(comm, fixture_memory, 2 * MESH_MESSAGE_MAX);
	assert_int_equal(
		mesh_comm_receive(comm, fixture_memory, MESH_MESSAGE_MAX + 1, whole, &request), 0);
	assert_non_null(request);
}

TEST(no_more_than_32)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (int i = 0; i < MESH_COMM_REQUESTS; i++)
		fixture_post(comm, 8);
	assert_int_equal(
		mesh_comm_receive(comm, fixture_memory, 8, fixture_registration(comm), &request),
		0);
	assert_null(request);
	assert_int_equal(mesh_comm_request(comm, 0)->seq, 0);
}

/* Requests done before the comm failed count; and a caller that tests keeps the engine awake. */
TEST(failure_spares_what_was_done)
{
	struct mesh_request *first, *second;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	first = fixture_post(comm, SMALL);
	second = fixture_post(comm, SMALL);
	fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, fixture_memory + SMALL, 10);
	atomic_store(&fixture.setup.process.engine.awake, false);
	mesh_lock_take(comm_inside(comm).lock);
	mesh_comm_fail(comm, -EPIPE, false, "the first reason");
	mesh_comm_fail(comm, -EIO, false, "another reason");
	mesh_lock_release(comm_inside(comm).lock);
	assert_failed(comm, -EPIPE, "node b over eth7: the first reason");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(fixture.setup.process.own_counters.comms_opened, 1);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 1);
	assert_int_equal(fixture_test(first), 10);
	assert_true(atomic_load(&fixture.setup.process.engine.awake));
	fixture_request_fails(second, -EPIPE);
	assert_int_equal(first->state, MESH_REQUEST_FREE);
}

/* An expected failure, and a peer whose loss was reported, count differently. */
TEST(quiet_failures)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	*comm_inside(comm).peer_end = MESH_END_CLOSING;
	process_take();
	mesh_comm_end(comm, -ECONNRESET, "the peer is lost");
	process_release();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 1);
	assert_int_equal(*comm_inside(comm).peer_end, MESH_END_UNCLEAN);
	assert_false(mesh_comm_peer_asks(comm));
}

/* The peer aborts in mid-message, and its process ends before what it has sent is here. */
TEST(process_ends_after_abort)
{
	struct mesh_frame_close closed = {.closed = 1, .sent = 1, .writes = 1, .unclean = 1};
	struct mesh_frame_close closing = {.closed = 0};
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	request = fixture_post(comm, LARGE);
	fixture_sends_complete();
	process_take();
	mesh_comm_close_came(comm, &closing);
	mesh_comm_close_came(comm, &closed);
	mesh_peer_process_ended(&fixture.peers[0], "its process has ended");
	mesh_peer_bury(&fixture.peers[0]);
	process_release();
	fixture_request_fails(request, -ECONNRESET);
	assert_failed(comm, -ECONNRESET, "lost node b");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* The provider copies what is short, and no more than our own copy holds. */
TEST(injected)
{
	const size_t most = MESH_PATH_INJECT_MAX - sizeof(struct mesh_message_header);

	fake.inject_size = 4096;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	assert_int_equal(sent(fixture_memory, most, fixture_registration(comm)), 0);
	assert_int_equal(fake.injects.num, 1);
	assert_int_equal(fake.injects.posts[0].size, MESH_PATH_INJECT_MAX);
	assert_int_equal(mesh_comm_request(comm, 0)->state, MESH_REQUEST_DONE);
	assert_int_equal(comm_path(comm, 0).counters->small, 1);
	assert_int_equal(sent(fixture_memory, most + 1, fixture_registration(comm)), 0);
	assert_int_equal(fake.injects.num, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
}

/* Without a buffer it waits for the next poll. */
TEST(no_buffer)
{
	struct mesh_buffer *buffer, *taken[512];
	int num = 0;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	while ((buffer = mesh_remote_buffer_get(fixture.domains[0], fixture.peers[0].remote)))
		taken[num++] = buffer;
	assert_int_equal(sent(fixture_memory, SMALL, fixture_registration(comm)), 0);
	assert_int_equal(fake.sends.num, 0);
	assert_int_equal(comm_path(comm, 0).counters->busy, 1);
	while (num)
		mesh_buffer_put(taken[--num]);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
}

/*
 * NCCL's own transports report an error in test, and not in isend or irecv. If all requests are in
 * use, "later" would never end: then the call itself fails.
 */
TEST_BARE(requests_of_a_failed_comm)
{
	struct mesh_request *request = NULL;
	int sending, i, ret = 0;

	for (sending = 0; sending < 2; sending++) {
		fixture_setup();
		comm = fixture_open(MESH_PROVIDER_TCP, 1, sending);
		fixture_fail(comm, -EPIPE);
		for (i = 0; i <= MESH_COMM_REQUESTS; i++) {
			if (sending)
				ret = mesh_comm_send(comm, fixture_memory, SMALL,
						     fixture_registration(comm), &request);
			else
				ret = mesh_comm_receive(comm, fixture_memory, SMALL,
							fixture_registration(comm), &request);
			if (i == MESH_COMM_REQUESTS)
				break;
			assert_int_equal(ret, 0);
			fixture_request_fails(request, -EPIPE);
			fixture_request_fails(request, -EPIPE); /* some versions ask again */
		}
		assert_int_equal(ret, -EPIPE);
		assert_null(request);
		assert_int_equal(fake.sends.num, 0);
		fixture_teardown();
	}
}

/* ---- registrations --------------------------------------------------------------------------- */

/* One in each path's domain, or none at all; nothing for nothing. */
TEST(registrations_of_all_paths)
{
	struct mesh_registration *failed = NULL;
	static char other[100];
	int before;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	before = fake.open[FAKE_MR];
	fixture_register(comm, NULL, 0);
	assert_int_equal(fake.open[FAKE_MR], before);
	fake_fail(FAKE_MR, 1, 1, -FI_ENOMEM);
	assert_int_equal(mesh_registration_open(comm, other, sizeof(other), &failed), -ENOMEM);
	assert_null(failed);
	assert_int_equal(fake.open[FAKE_MR], before);
	fixture_register(comm, other, sizeof(other)); /* NCCL leaves it: closing ends it */
	assert_int_equal(fake.open[FAKE_MR], before + 2);
	fixture_comm_close(comm);
	assert_int_equal(fake.open[FAKE_MR], before - 2); /* and the fixture's */
}
