/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stopped.c - a comm leaves a relay whose process is stopped, if there is another way; routes
 * avoid that node, and a hop that was lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "neighbours/neighbours.h"
#include "relay/circuit.h"
#include "relay/relay.h"
#include "setup/events.h"
#include "transport/recovery.h"
#include "transport/route_wait.h"
#include "transport/stopped.h"

#include "log_capture.h"
#include "relays_fixture.h"

#define ROOM ((size_t)64 << 10)
#define LIMIT_MS 3000
#define LOOK_MS 500
#define RELAYS 2
#define NODE_P RELAY_NODE(0)
#define NODE_Q RELAY_NODE(1)
#define NODE_R 13

static struct mesh_relay relay;
static uint64_t began_ms;

static int setup(void **state)
{
	int ret = fixture_setup(state);

	memset(&relay, 0, sizeof(relay));
	relay.neighbours = calloc(1, sizeof(*relay.neighbours));
	fixture.setup.process.relay = &relay;
	return ret;
}

static int teardown(void **state)
{
	fixture.setup.process.relay = NULL;
	free(relay.neighbours);
	return relays_close(state);
}

/* A comm of one path, over p, or of two. */
static void sender_open(int num_paths)
{
	relayed_sender_open(RELAYS, num_paths);
	fixture.num_paths = num_paths; /* in grants */
	began_ms = mesh_clock_ms();
}

/* The next frame about circuits to relay @i; without one its event is 0. */
static struct mesh_frame_circuit circuit_to(int i)
{
	struct mesh_frame frame;

	while (next_frame_to(i, &frame)) {
		if (frame.header.type == MESH_FRAME_CIRCUIT)
			return frame.circuit;
	}
	return (struct mesh_frame_circuit){.event = 0};
}

/* Looks from @from_ms to @to_ms after the beginning, while the comm waits. */
static void looks(uint64_t from_ms, uint64_t to_ms)
{
	uint64_t ms;

	process_take();
	for (ms = from_ms; ms <= to_ms; ms += LOOK_MS)
		mesh_stopped_look(comm, 1000 + ms, began_ms + ms);
	process_release();
}

static void answer_comes(int i)
{
	circuit_comes(i, i, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_ANSWER});
}

static enum mesh_path_state state_of(int i)
{
	return comm->paths[i].state;
}

static bool wants_route(uint64_t ms)
{
	bool wants;

	process_take();
	wants = mesh_stopped_wants_route(comm, began_ms + ms);
	process_release();
	return wants;
}

static bool is_avoided(uint64_t node)
{
	return mesh_graph_is_doubtful(&relay.neighbours->searching.explore.graph, node, 99,
				      mesh_clock_ms());
}

/* Of two paths the one is left that does not answer; the other end is informed over the other. */
static void test_another_path(void **state)
{
	struct mesh_frame_circuit left;

	(void)state;
	sender_open(2);
	looks(0, 0);
	assert_int_equal(circuit_to(0).event, MESH_CIRCUIT_ASK);
	assert_int_equal(circuit_to(1).event, MESH_CIRCUIT_ASK);
	answer_comes(1);
	looks(LOOK_MS, LOOK_MS);
	assert_int_equal(circuit_to(0).event, 0); /* one question without an answer is enough */
	assert_int_equal(circuit_to(1).event, MESH_CIRCUIT_ASK);
	answer_comes(1);
	looks(2 * LOOK_MS, LIMIT_MS - LOOK_MS);
	assert_int_equal(state_of(0), MESH_PATH_UP);
	answer_comes(1);
	assert_int_equal(circuit_to(1).event, MESH_CIRCUIT_ASK);
	looks(LIMIT_MS, LIMIT_MS);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(state_of(1), MESH_PATH_UP);
	assert_int_equal(circuit_to(0).event, MESH_CIRCUIT_SHUT);
	do
		left = circuit_to(1);
	while (left.event == MESH_CIRCUIT_ASK);
	assert_int_equal(left.event, MESH_CIRCUIT_LEFT);
	assert_int_equal(left.to_comm, FIXTURE_REMOTE_ID + 1);
	assert_int_equal(left.writes, 0);
	assert_int_equal(left.lost_node, NODE_P);
	assert_true(is_avoided(NODE_P) && !is_avoided(NODE_Q));
	assert_true(log_captured(MESH_LOG_WARN, "node p, a relay of this path, does not answer"));
	assert_int_equal(fixture.peers[0].state, MESH_PEER_UP); /* nothing is stuck there */
	relayed_close();
}

/* Both are stopped at the same time, or this process itself was: nothing is left. */
static void test_nothing_is_left(void **state)
{
	(void)state;
	sender_open(2);
	looks(0, 2 * LIMIT_MS);
	assert_int_equal(comm->num_up, 2);
	answer_comes(0);
	answer_comes(1);
	looks(3 * LIMIT_MS, 3 * LIMIT_MS); /* asks again */
	answer_comes(1);
	looks(5 * LIMIT_MS, 5 * LIMIT_MS); /* no look between: the time does not count */
	assert_int_equal(comm->num_up, 2);
	relayed_close();
}

/* A relay that answers may name one behind it, but not in an earlier wait. */
static void test_second_relay(void **state)
{
	const struct mesh_frame_circuit found = {.event = MESH_CIRCUIT_ANSWER,
						 .lost = "r",
						 .by = "p",
						 .lost_node = NODE_R,
						 .by_node = NODE_P};

	(void)state;
	sender_open(2);
	looks(0, 0);
	answer_comes(1);
	circuit_comes(0, 0, found);
	process_take();
	mesh_stopped_look(comm, 600, mesh_clock_ms() + 1000); /* another wait */
	process_release();
	assert_int_equal(comm->num_up, 2);
	answer_comes(1);
	circuit_comes(0, 0, found);
	looks(LOOK_MS, LOOK_MS);
	assert_int_equal(comm->num_up, 1);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_true(is_avoided(NODE_R) && !is_avoided(NODE_P));
	relayed_close();
}

/* What is stuck on the way to the stopped relay costs the link. */
static void test_stuck(void **state)
{
	(void)state;
	sender_open(2);
	fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 2, ROOM);
	assert_int_equal(fake.writes.num, 2);
	looks(0, LIMIT_MS - LOOK_MS);
	answer_comes(1);
	looks(LIMIT_MS, LIMIT_MS);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(fixture.peers[0].state, MESH_PEER_LOST);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_UP);
	fixture.num_paths = 2;
	fixture_writes_complete(2);
	relayed_close();
}

/* The only path is kept until another route is known; a circuit of others keeps it for good. */
static void test_only_path(void **state)
{
	struct mesh_circuit circuit = {.relay = &relay};

	(void)state;
	sender_open(1);
	looks(0, LIMIT_MS - LOOK_MS);
	assert_false(wants_route(LIMIT_MS - LOOK_MS) || fixture.setup.process.routeless);
	looks(LIMIT_MS, LIMIT_MS);
	assert_true(wants_route(LIMIT_MS) && fixture.setup.process.routeless);
	assert_int_equal(state_of(0), MESH_PATH_UP);
	circuit.down.circuit = circuit.up.circuit = &circuit;
	circuit.down.peer = &fixture.peers[0];
	LIST_INSERT_HEAD(&relay.circuits, &circuit, entry);
	assert_false(wants_route(LIMIT_MS)); /* it ends in p */
	circuit.to_relay = true;
	assert_true(wants_route(LIMIT_MS)); /* it ends elsewhere */
	LIST_REMOVE(&circuit, entry);
	process_take();
	mesh_stopped_leave(comm, began_ms + LIMIT_MS);
	assert_true(mesh_comm_lacks_route(comm));
	process_release();
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(*comm_inside(comm).error, 0);
	relayed_close();
}

/*
 * Both of two paths are left for another route: no relay that is stopped gets word of that for the
 * other end, which would come when that relay runs again, and the path of this index is a new one.
 */
static void test_both_paths(void **state)
{
	struct mesh_frame_circuit event;

	(void)state;
	sender_open(2);
	looks(0, LIMIT_MS);
	assert_true(wants_route(LIMIT_MS));
	process_take();
	mesh_stopped_leave(comm, began_ms + LIMIT_MS);
	assert_true(mesh_comm_lacks_route(comm));
	process_release();
	do {
		event = circuit_to(1);
		assert_int_not_equal(event.event, MESH_CIRCUIT_LEFT);
	} while (event.event != MESH_CIRCUIT_SHUT);
	assert_int_equal(circuit_to(1).event, 0);
	relayed_close();
}

/* A relay that runs again before it is left is not avoided. */
static void test_runs_again(void **state)
{
	(void)state;
	sender_open(1);
	began_ms -= LIMIT_MS;
	looks(0, LIMIT_MS);
	assert_true(is_avoided(NODE_P));
	answer_comes(0);
	assert_false(is_avoided(NODE_P));
	assert_false(wants_route(LIMIT_MS));
	relayed_close();
}

/* A receiver asks as well, and informs the sender, whose messages may be in the stopped relay. */
static void test_receiver(void **state)
{
	struct mesh_frame_circuit left;

	(void)state;
	relayed_receiver_open(RELAYS, 2);
	began_ms = mesh_clock_ms();
	fixture_post(comm, ROOM);
	fixture_sends_complete();
	looks(0, LIMIT_MS - LOOK_MS);
	answer_comes(0);
	while (circuit_to(0).event)
		continue;
	looks(LIMIT_MS, LIMIT_MS);
	assert_int_equal(state_of(1), MESH_PATH_SUSPECT);
	do
		left = circuit_to(0);
	while (left.event == MESH_CIRCUIT_ASK);
	assert_int_equal(left.event, MESH_CIRCUIT_LEFT);
	assert_int_equal(left.writes, 1);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_UP); /* no fence is needed yet */
	/* The last relay is known not to report: the fence does not wait for it. */
	process_take();
	comm->paths[1].silence.asked_ms = mesh_clock_ms() - LIMIT_MS;
	mesh_path_given_up(&comm->paths[1]);
	process_release();
	assert_int_equal(state_of(1), MESH_PATH_DOWN);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_LOST);
	fixture.num_paths = 2;
	fixture_sends_complete();
	relayed_close();
}

/* LEFT: the other end has left a path. One that does not exist is refused. */
static void test_left(void **state)
{
	struct mesh_frame_circuit left = {.event = MESH_CIRCUIT_LEFT,
					  .writes = 2,
					  .lost = "p",
					  .by = "b",
					  .lost_node = NODE_P};

	(void)state;
	sender_open(2);
	circuit_comes(1, 1, left);
	assert_int_equal(comm->num_up, 2);
	assert_int_equal(fixture.setup.process.own_counters.refused, 1);
	left.writes = 0;
	circuit_comes(1, 1, left);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(state_of(1), MESH_PATH_UP);
	circuit_comes(1, 1, left); /* again */
	assert_int_equal(comm->num_up, 1);
	relayed_close();
}

/* Routes avoid the hop that the relay names, and our own one to a relay that is lost. */
static void test_hop_is_doubted(void **state)
{
	const struct mesh_graph *graph;

	(void)state;
	sender_open(2);
	graph = &relay.neighbours->searching.explore.graph;
	circuit_comes(0, 0,
		      (struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST,
						  .lost = "b",
						  .by = "p",
						  .lost_node = 4,
						  .by_node = NODE_P});
	assert_true(mesh_graph_is_doubtful(graph, NODE_P, 4, mesh_clock_ms()));
	assert_false(mesh_graph_is_doubtful(graph, 1, NODE_P, mesh_clock_ms()));
	process_take();
	mesh_peer_lose(&fixture.peers[1], "test");
	mesh_peer_bury(&fixture.peers[1]);
	process_release();
	assert_true(mesh_graph_is_doubtful(graph, 1, NODE_Q, mesh_clock_ms()));
	assert_false(mesh_graph_is_doubtful(graph, 1, NODE_Q, mesh_clock_ms() + 2000));
	relayed_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_another_path),   TEST(test_nothing_is_left), TEST(test_second_relay),
		TEST(test_stuck),	   TEST(test_only_path),       TEST(test_both_paths),
		TEST(test_runs_again),	   TEST(test_receiver),	       TEST(test_left),
		TEST(test_hop_is_doubted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
