/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stopped.c - a comm leaves a relay whose process is stopped, if there is another way; routes
 * avoid that node, and a hop that was lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "neighbours/neighbours.h"
#include "relay/circuit.h"
#include "relay/relay.h"
#include "setup/events.h"
#include "transport/circuit_end.h"
#include "transport/comm_open.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/route_wait.h"
#include "transport/stopped.h"
#include "wire/handle.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)64 << 10)
#define LIMIT_MS 3000
#define LOOK_MS 500
#define NODE_P 11
#define NODE_Q 12
#define NODE_R 13

static struct mesh_comm *comm;
static int second_frames; /* the other end of the second relay's control connection */
static struct mesh_relay relay;
static uint64_t began_ms;

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

static void process_take(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
}
static void process_release(void)
{
	mesh_lock_release(&fixture.setup.process.lock);
}

/* Two relays, p and q, each at a NIC of its own. */
static void relays_open(bool incoming)
{
	struct mesh_process *process = &fixture.setup.process;
	int i, ends[2];

	process->config.recovery = 1;
	process->config.recovery_timeout_s = 30;
	process->config.dead_peer_timeout_s = 10;
	strcpy(process->name, "here");
	process->node_id = 1;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fixture.peers[1].watch.fd = ends[0];
	second_frames = ends[1];
	memset(&relay, 0, sizeof(relay));
	relay.neighbours = calloc(1, sizeof(*relay.neighbours));
	process->relay = &relay;
	for (i = 0; i < 2; i++) {
		fixture.peers[i].timer.expired = nothing;
		fixture.peers[i].incoming = incoming;
		fixture.peers[i].node_id = i ? NODE_Q : NODE_P;
		strcpy(fixture.peers[i].name, i ? "q" : "p");
	}
	began_ms = mesh_clock_ms();
}

static int teardown(void **state)
{
	fixture.setup.process.relay = NULL;
	free(relay.neighbours);
	fixture.num_paths = 2;
	close(fixture.peers[1].watch.fd);
	close(second_frames);
	return fixture_teardown(state);
}

static void comm_close(void)
{
	fixture.num_paths = 2;
	fixture_comm_close(comm);
}

/* A comm of one path, over p, or of two. */
static void sender_open(int num_paths)
{
	const struct mesh_frame_opened opened = {
		.comm = FIXTURE_REMOTE_ID,
		.token = FIXTURE_REMOTE_TOKEN,
		.eager_limit = FIXTURE_EAGER_LIMIT,
		.address = 0xab0000,
		.key = 0xcd,
		.granule = 64 << 10,
		.via = "p",
	};
	int i;

	relays_open(false);
	fixture.num_paths = num_paths; /* in grants */
	process_take();
	assert_int_equal(
		mesh_comm_open_relayed(&fixture.net, &fixture.peers[0], "b", 7, num_paths, &comm),
		0);
	if (num_paths > 1)
		assert_int_equal(mesh_comm_path_add_relayed(comm, &fixture.peers[1]), 0);
	for (i = 0; i < num_paths; i++)
		assert_int_equal(mesh_path_relayed_opened(&comm->paths[i], &opened), 0);
	mesh_comm_paths_learn(comm);
	for (i = 0; i < num_paths; i++)
		mesh_path_accepted(&comm->paths[i], FIXTURE_REMOTE_ID + (uint32_t)i,
				   FIXTURE_REMOTE_TOKEN);
	comm->handle = calloc(1, sizeof(*comm->handle));
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

static void receiver_open(int num_paths)
{
	const struct mesh_frame_connect request = {.origin = "a", .via = "p"};
	int i;

	relays_open(true);
	fixture.num_paths = num_paths;
	process_take();
	assert_int_equal(
		mesh_comm_open(&fixture.net, false, &fixture.peers[0], 7, num_paths, &comm), 0);
	if (num_paths > 1)
		assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[1]), 0);
	for (i = 0; i < num_paths; i++) {
		assert_int_equal(mesh_path_received_via(&comm->paths[i], &request), 0);
		mesh_path_accepted(&comm->paths[i], FIXTURE_REMOTE_ID + (uint32_t)i,
				   FIXTURE_REMOTE_TOKEN);
	}
	process_release();
	memset(fixture_memory, 0, FIXTURE_MEMORY);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

/* The next frame about circuits to relay @i; without one its event is 0. */
static struct mesh_frame_circuit circuit_to(int i)
{
	uint8_t bytes[sizeof(struct mesh_frame)];
	int fd = i ? second_frames : fixture.frames, size;
	struct mesh_frame frame;
	ssize_t n;

	for (;;) {
		n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		if (n <= 0)
			return (struct mesh_frame_circuit){.event = 0};
		size = mesh_frame_decode(bytes, (size_t)n, &frame);
		assert_true(size > 0);
		assert_int_equal(recv(fd, bytes, (size_t)size, 0), size);
		if (frame.header.type == MESH_FRAME_CIRCUIT)
			return frame.circuit;
	}
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

static void circuit_comes(int i, struct mesh_frame_circuit event)
{
	struct mesh_frame frame = {.circuit = event};

	frame.circuit.to_comm = comm->paths[i].sink.id;
	process_take();
	if (!mesh_stopped_event(&fixture.peers[i], &frame))
		mesh_path_circuit_event(&fixture.peers[i], &frame);
	process_release();
}

static void answer_comes(int i)
{
	circuit_comes(i, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_ANSWER});
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
	comm_close();
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
	comm_close();
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
	circuit_comes(0, found);
	process_take();
	mesh_stopped_look(comm, 600, mesh_clock_ms() + 1000); /* another wait */
	process_release();
	assert_int_equal(comm->num_up, 2);
	answer_comes(1);
	circuit_comes(0, found);
	looks(LOOK_MS, LOOK_MS);
	assert_int_equal(comm->num_up, 1);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_true(is_avoided(NODE_R) && !is_avoided(NODE_P));
	comm_close();
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
	comm_close();
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
	comm_close();
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
	comm_close();
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
	comm_close();
}

/* A receiver asks as well, and informs the sender, whose messages may be in the stopped relay. */
static void test_receiver(void **state)
{
	struct mesh_frame_circuit left;

	(void)state;
	receiver_open(2);
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
	comm_close();
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
	circuit_comes(1, left);
	assert_int_equal(comm->num_up, 2);
	assert_int_equal(fixture.setup.process.own_counters.refused, 1);
	left.writes = 0;
	circuit_comes(1, left);
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(state_of(1), MESH_PATH_UP);
	circuit_comes(1, left); /* again */
	assert_int_equal(comm->num_up, 1);
	comm_close();
}

/* Routes avoid the hop that the relay names, and our own one to a relay that is lost. */
static void test_hop_is_doubted(void **state)
{
	const struct mesh_graph *graph;

	(void)state;
	sender_open(2);
	graph = &relay.neighbours->searching.explore.graph;
	circuit_comes(0, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST,
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
	comm_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

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
