/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_end_reason.c - the peer ends a connection. If NCCL still uses it, one WARN has the reason
 * before a call returns the error, however many connections have ended: NCCL keeps the last WARN
 * for ncclGetLastError(). At an orderly end there is none.
 */
#include "control/peer_end.h"
#include "transport/answer.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)
#define COMMS 20

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comms[COMMS];

static void comms_open(bool sending)
{
	int i;

	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	for (i = 0; i < COMMS; i++)
		comms[i] = fixture_comm_open(sending);
}

/* As NCCL's abort there, and its orderly end, if nothing is in flight. */
static void peer_ends_all(struct mesh_frame_closed closed)
{
	int i;

	process_take();
	for (i = 0; i < COMMS; i++) {
		mesh_comm_close_came(comms[i]);
		mesh_comm_closed_came(comms[i], &closed);
	}
	process_release();
}

/* NCCL needs none of them any more. */
TEST(orderly)
{
	bool sending;
	int i;

	for (sending = false;; sending = true) {
		comms_open(sending);
		peer_ends_all((struct mesh_frame_closed){0});
		assert_int_equal(*comm_inside(comms[0]).error, -EPIPE);
		for (i = 0; i < COMMS; i++)
			fixture_comm_close(comms[i]);
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
		assert_int_equal(fixture.setup.process.own_counters.comms_failed, 0);
		if (sending)
			return;
		assert_int_equal(fixture_teardown(), 0);
		fixture_setup();
	}
}

/* NCCL had posted nothing when the peer aborted, and posts then. */
static void used_later(bool sending, const char *why)
{
	struct mesh_request *request;
	int i;

	comms_open(sending);
	peer_ends_all((struct mesh_frame_closed){0});
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	for (i = 0; i < COMMS; i++) {
		request = fixture_post(comms[i], SMALL);
		fixture_request_fails(request, -EPIPE);
		assert_failed(comms[i], -EPIPE, why);
		fixture_request_fails(request, -EPIPE); /* some versions test it again and again */
	}
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, COMMS);
}

TEST(send_later)
{
	used_later(true, "sending to node b over eth7: the receiver closed the connection");
}

TEST(receive_later)
{
	used_later(false, "receiving from node b over eth7: the sender closed the connection");
}

/* Requests are open on all of them. */
TEST(posted_before)
{
	struct mesh_request *requests[COMMS];
	int i;

	comms_open(false);
	for (i = 0; i < COMMS; i++)
		requests[i] = fixture_post(comms[i], SMALL);
	fixture_sends_complete();
	peer_ends_all((struct mesh_frame_closed){0});
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1); /* before NCCL looks */
	for (i = 0; i < COMMS; i++)
		fixture_request_fails(requests[i], -EPIPE);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, COMMS);
}

/* It aborts in mid-message, and its process ends before what it has sent is here. */
TEST(process_ends_after)
{
	struct mesh_request *request;

	comms_open(false);
	request = fixture_post(comms[0], LARGE);
	fixture_sends_complete();
	peer_ends_all((struct mesh_frame_closed){.sent = 1, .writes = 1, .unclean = 1});
	process_take();
	mesh_peer_lose(&fixture.peers[0], "its process has ended");
	mesh_peer_bury(&fixture.peers[0]);
	process_release();
	fixture_request_fails(request, -ECONNRESET);
	assert_failed(comms[0], -ECONNRESET, "lost node b");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
}
