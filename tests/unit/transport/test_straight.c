/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_straight.c - a comm whose relays are lost goes on without one: its path leads to the process
 * at the other end, until it gets another circuit.
 */
#include <errno.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "setup/events.h"
#include "transport/recovery.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"

#include "log_capture.h"
#include "relays_fixture.h"

#define ROOM ((size_t)64 << 10)

/* The relay p, and the process at the other end, each at a NIC of its own. */
static void peers_open(bool incoming)
{
	int i;

	relays_open(2, incoming);
	fixture.num_paths = 1; /* in grants */
	for (i = 0; i < 2; i++) {
		fixture.peers[i].routed = i;
		fixture.peers[i].eager_limit = FIXTURE_EAGER_LIMIT;
	}
	strcpy(fixture.peers[1].name, "other");
}

static bool no_frame_to_other(void)
{
	struct mesh_frame frame;

	return !next_frame_to(1, &frame);
}

/* The circuit breaks that the path has through the relay. */
static void circuit_lost(void)
{
	circuit_comes(0, 0,
		      (struct mesh_frame_circuit){
			      .event = MESH_CIRCUIT_LOST,
			      .lost = "b",
			      .by = "p",
		      });
}

/* ---- the sending end ----------------------------------------------------------------------- */

static void sender_open(void)
{
	struct mesh_path *path;

	peers_open(false);
	process_take();
	assert_int_equal(
		mesh_comm_open_relayed(&fixture.net, &fixture.peers[0], "b", KEY, 1, &comm), 0);
	path = &comm->paths[0];
	assert_int_equal(mesh_path_relayed_opened(path, &opened), 0);
	mesh_comm_paths_learn(comm);
	mesh_path_accepted(path, opened.comm, opened.token);
	comm->handle = calloc(1, sizeof(*comm->handle));
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

static int begin_straight(void)
{
	int ret;

	process_take();
	ret = mesh_reroute_begin_straight(comm->paths, &fixture.peers[1]);
	fixture.epoch = comm->epoch;
	process_release();
	return ret;
}

/* ACCEPT comes from the other end. */
static bool accept_comes(void)
{
	const struct mesh_frame_accept accept = {
		.to_comm = comm->paths[0].sink.id,
		.comm = FIXTURE_REMOTE_ID,
		.token = FIXTURE_REMOTE_TOKEN,
	};
	struct mesh_path *path;
	bool accepted;

	process_take();
	path = mesh_reroute_find(&fixture.peers[1], accept.to_comm);
	assert_ptr_equal(path, &comm->paths[0]);
	accepted = mesh_reroute_accepted(path, &accept);
	process_release();
	return accepted;
}

static void goes_straight(void)
{
	circuit_lost();
	frame_to(0, MESH_FRAME_CIRCUIT);
	assert_int_equal(begin_straight(), 0);
	assert_true(accept_comes());
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
}

/* Writes go into the receiver's memory, and are announced as on any path to it. */
static void test_sender(void **state)
{
	struct mesh_path_ends ends;

	(void)state;
	sender_open();
	goes_straight();
	assert_true(log_captured(MESH_LOG_WARN, "another route leads there"));
	assert_true(log_captured(MESH_LOG_WARN, "(path via routed)"));
	process_take();
	ends = mesh_path_describe(&comm->paths[0]);
	process_release();
	assert_int_equal(ends.via, MESH_STATS_ROUTED);
	assert_null(comm->paths[0].via);
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	assert_int_equal(fake.writes.num, 1);
	assert_true(fake.writes.posts[0].address != opened.address);
	fixture.num_paths = 2;
	fixture_writes_complete(1);
	assert_int_equal(fixture_test(&comm->requests[0]), ROOM);
	relayed_close();
}

/* OPENED of the relay before says nothing of it, nor ACCEPT of one that is asked for a circuit. */
static void test_other_answers(void **state)
{
	const struct mesh_frame_accept accept = {.comm = 1, .token = 2};

	(void)state;
	sender_open();
	circuit_lost();
	assert_int_equal(begin_straight(), 0);
	process_take();
	assert_false(mesh_reroute_opened(&comm->paths[0], &opened));
	assert_int_equal(comm->paths[0].state, MESH_PATH_JOINING);
	mesh_reroute_end(&comm->paths[0]);
	assert_int_equal(mesh_reroute_begin(&comm->paths[0], &fixture.peers[1]), 0);
	assert_false(mesh_reroute_accepted(&comm->paths[0], &accept));
	assert_int_equal(comm->paths[0].state, MESH_PATH_JOINING);
	process_release();
	relayed_close();
}

/* What was agreed on with the first circuit is too much for it. */
static void test_does_not_suffice(void **state)
{
	(void)state;
	sender_open();
	circuit_lost();
	fixture.peers[1].eager_limit = FIXTURE_EAGER_LIMIT - 1;
	assert_int_equal(begin_straight(), -EOPNOTSUPP);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	process_take();
	assert_true(mesh_comm_lacks_route(comm));
	process_release();
	relayed_close();
}

/* The other end is not asked whether it runs: nothing fails because it does not. */
static void test_not_asked(void **state)
{
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	sender_open();
	goes_straight();
	process_take();
	mesh_stopped_look(comm, 1000, now_ms + 1000);
	assert_true(no_frame_to_other());
	assert_false(mesh_stopped_wants_route(comm, now_ms + 60000));
	process_release();
	relayed_close();
}

/* Back through relays: the other end has no circuit that is to be shut. */
static void test_back(void **state)
{
	(void)state;
	sender_open();
	goes_straight();
	process_take();
	mesh_path_relayed_shut(&comm->paths[0]);
	assert_true(no_frame_to_other());
	mesh_peer_lose(&fixture.peers[1], "its cable was pulled");
	mesh_peer_bury(&fixture.peers[1]);
	process_release();
	process_take();
	assert_true(mesh_comm_lacks_route(comm));
	assert_int_equal(mesh_reroute_begin(&comm->paths[0], &fixture.peers[0]), 0);
	fixture.epoch = comm->epoch;
	assert_true(mesh_reroute_opened(&comm->paths[0], &opened));
	process_release();
	assert_string_equal(comm->paths[0].via, "p");
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(fake.writes.posts[0].address, opened.address);
	fixture.num_paths = 2;
	fixture_writes_complete(1);
	relayed_close();
}

/* Its process has ended: unlike that of a relay, nothing can follow. */
static void test_over(void **state)
{
	(void)state;
	sender_open();
	process_take();
	fixture.peers[0].over = true;
	assert_true(mesh_path_is_resumed(&comm->paths[0]));
	process_release();
	goes_straight();
	process_take();
	fixture.peers[1].over = true;
	assert_false(mesh_path_is_resumed(&comm->paths[0]));
	fixture.peers[0].over = fixture.peers[1].over = false;
	process_release();
	relayed_close();
}

/* ---- the receiving end --------------------------------------------------------------------- */

/* What the sending end asks with: as a relay, but for that. */
static struct mesh_frame_connect straight_request(void)
{
	struct mesh_frame_connect connect = request;

	memset(connect.via, 0, sizeof(connect.via));
	connect.num_paths = 1;
	return connect;
}

static void receiver_open(void)
{
	struct mesh_frame_connect first = straight_request();

	strcpy(first.via, "p");
	peers_open(true);
	process_take();
	assert_int_equal(mesh_comm_open(&fixture.net, false, &fixture.peers[0], KEY, 1, &comm), 0);
	assert_int_equal(mesh_path_received_via(&comm->paths[0], &first), 0);
	comm->cookie = COOKIE;
	mesh_path_accepted(&comm->paths[0], FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	fixture_post(comm, ROOM);
	fixture_sends_complete();
}

static void test_receiver(void **state)
{
	struct mesh_frame_connect connect = straight_request();

	(void)state;
	receiver_open();
	circuit_lost();
	process_take();
	mesh_path_drained(&comm->paths[0]);
	connect.epoch = 1;
	assert_true(mesh_reroute_came(&fixture.peers[1], &connect));
	process_release();
	frame_to(1, MESH_FRAME_ACCEPT);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	assert_null(comm->paths[0].via);
	assert_false(mesh_path_has_relay(&comm->paths[0]));
	/* The sender has lost it: no relay is there to report, so the link is fenced at once. */
	process_take();
	mesh_path_given_up(&comm->paths[0]);
	process_release();
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_LOST);
	fixture.num_paths = 2;
	fixture_sends_complete();
	relayed_close();
}

/* A circuit that does not suffice is given back: the end of its relay is not the peer's. */
static void test_given_back(void **state)
{
	struct mesh_frame_connect connect = straight_request();

	(void)state;
	receiver_open();
	circuit_lost();
	process_take();
	mesh_path_drained(&comm->paths[0]);
	connect.epoch = 1;
	assert_true(mesh_reroute_came(&fixture.peers[1], &connect));
	mesh_path_given_up(&comm->paths[0]);
	process_release();
	fixture.num_paths = 2;
	fixture_sends_complete();
	process_take();
	strcpy(connect.via, "p");
	connect.epoch = 2;
	fixture.peers[0].eager_limit = FIXTURE_EAGER_LIMIT - 1;
	assert_true(mesh_reroute_came(&fixture.peers[0], &connect));
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_ptr_equal(mesh_path_peer(&comm->paths[0]), &fixture.peers[0]);
	fixture.peers[0].over = true;
	assert_true(mesh_path_is_resumed(&comm->paths[0]));
	fixture.peers[0].over = false;
	process_release();
	relayed_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, relays_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sender),    TEST(test_other_answers), TEST(test_does_not_suffice),
		TEST(test_not_asked), TEST(test_back),		TEST(test_over),
		TEST(test_receiver),  TEST(test_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
