/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuits.c - what a neighbour may ask of a relay: it opens circuits without end, repeats its
 * OPENs, names routes that are not ours. All of that is bounded and refused, and nothing stays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_frames.h"
#include "relay/circuit.h"
#include "relay/circuits.h"
#include "relay/ending.h"
#include "relay/opening.h"
#include "relay/relay.h"
#include "setup/setup.h"
#include "wire/frame.h"

#include "log_capture.h"
#include "transport_pair.h"

/* OPENs of one neighbour. */
#define FLOOD 10000

static struct pair pair;
static struct mesh_process *process;
static struct mesh_peer *peer;
static struct mesh_frame request;

/* The peer of the pair's receiving end: this process itself, which came to it. */
static struct mesh_peer *incoming_find(void)
{
	struct mesh_peer *found;

	LIST_FOREACH(found, &process->peers, entry) {
		if (found->incoming && found->state == MESH_PEER_UP)
			break;
	}
	assert_non_null(found);
	return found;
}

/* An OPEN that this process accepts: one relay, and a listener that is here as well. */
static void request_make(void)
{
	struct mesh_handle handle;

	memset(&handle, 0, sizeof(handle));
	memset(&request, 0, sizeof(request));
	handle.node_id = process->node_id; /* only a node itself is reached over lo */
	handle.cookie = 1;
	handle.listen_id = 1;
	handle.control_port = 1; /* nothing listens there */
	handle.num_endpoints = 1;
	handle.total_nics = 1;
	handle.endpoints[0] = process->endpoints[0];
	strcpy(handle.node, "target");
	mesh_handle_encode(&handle, request.open.handle);
	request.open.comm_key = 5;
	request.open.comm = 9;
	request.open.token = 3;
	request.open.num_paths = 1;
	request.open.num_relays = 1;
	request.open.route[0] = process->node_id;
	request.open.job = process->relay->job;
	strcpy(request.open.origin, "origin");
}

static int setup(void **state)
{
	(void)state;
	pair_open(&pair);
	process = pair.net->process;
	log_capture_start();
	mesh_lock_take(&process->lock);
	peer = incoming_find();
	request_make();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_circuits_close(process); /* else the end of the plugin waits for them */
	assert_int_equal(process->relay->memory, 0);
	mesh_lock_release(&process->lock);
	pair_close(&pair);
	log_capture_stop();
	return 0;
}

static int circuits_count(void)
{
	struct mesh_circuit *circuit;
	int count = 0;

	LIST_FOREACH(circuit, &process->relay->circuits, entry)
		count++;
	return count;
}

static void open_send(void)
{
	mesh_circuit_open_came(peer, &request);
}

/* What is short of memory gets twice as much, and leaves a quarter of all for others. */
MESH_NOT_ANALYSED
static void test_grows(void **state)
{
	uint64_t limit = process->config.relay_memory_bytes;
	struct mesh_circuit *circuit;
	int i;

	(void)state;
	process->config.relay_memory_bytes = 32 * MESH_CIRCUIT_BYTES_MIN;
	open_send();
	circuit = LIST_FIRST(&process->relay->circuits);
	assert_int_equal(circuit->bytes, MESH_CIRCUIT_BYTES_MIN);
	circuit->granule = MESH_CIRCUIT_BYTES_MIN / 2;
	circuit->limit = 2;
	mesh_circuit_lock(circuit);
	for (i = 0; i < 15; i++)
		mesh_circuit_grow(circuit);
	assert_int_equal(circuit->limit, 2);
	mesh_circuit_grow(circuit);
	assert_int_equal(circuit->limit, 4);
	for (i = 0; i < 1000; i++)
		mesh_circuit_grow(circuit);
	assert_int_equal(circuit->limit, 32); /* the next step would take all */
	mesh_circuit_unlock(circuit);
	assert_int_equal(circuit->bytes, 16 * MESH_CIRCUIT_BYTES_MIN);
	assert_int_equal(process->relay->memory, circuit->bytes);
	process->config.relay_memory_bytes *= 8;
	mesh_circuit_lock(circuit);
	for (i = 0; i < 1000; i++)
		mesh_circuit_grow(circuit);
	mesh_circuit_unlock(circuit);
	assert_int_equal(circuit->limit, MESH_GRANULES);
	assert_int_equal(process->relay->memory, 32 * MESH_CIRCUIT_BYTES_MIN);
	process->config.relay_memory_bytes = limit;
}

/* Each one has the least memory in the end, and then there is none. */
static void test_flood(void **state)
{
	uint64_t limit = process->config.relay_memory_bytes, refused = process->counters->refused;
	int i, count = 0, last = 0;

	(void)state;
	for (i = 0; i < FLOOD; i++) {
		request.open.comm = (uint32_t)i;
		open_send();
		assert_true(process->relay->memory <= limit);
		count = circuits_count();
		assert_true(count >= last);
		last = count;
	}
	/* A quarter of 256 MiB has room for 2,048 of 32 KiB. */
	assert_true(count > 2048);
	assert_int_equal(process->relay->memory, limit);
	assert_int_equal(process->counters->refused - refused, FLOOD - count);
}

/* The connecting node is lost, as circuits are told. */
static void peer_lose(void)
{
	struct mesh_circuit *circuit;

	LIST_FOREACH(circuit, &process->relay->circuits, entry)
		circuit->up.user.ops->lost(&circuit->up.user);
}

/* The same OPEN again is another circuit for all that we know, and counts. */
static void test_replay(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		open_send();
		assert_int_equal(circuits_count(), i + 1);
	}
	peer_lose();
	LIST_FIRST(&process->relay->circuits)
		->timer.expired(&LIST_FIRST(&process->relay->circuits)->timer, mesh_clock_ms());
	assert_int_equal(circuits_count(), 2);
}

/* Each of them is answered with REFUSE, and counted. */
static void test_refused(void **state)
{
	uint64_t refused = process->counters->refused;

	(void)state;
	request.open.route[0]++;
	open_send();
	assert_int_equal(circuits_count(), 0);
	request.open.route[0]--;
	request.open.job++;
	open_send();
	assert_int_equal(circuits_count(), 0);
	request.open.job--;
	memset(request.open.handle, 0x5a, 16);
	open_send();
	assert_int_equal(circuits_count(), 0);
	assert_int_equal(process->relay->memory, 0);
	assert_int_equal(process->counters->refused, refused + 3);
	request_make();
	strcpy(process->config.relay, "off");
	open_send();
	assert_int_equal(circuits_count(), 0);
	assert_int_equal(process->counters->refused, refused + 4);
	strcpy(process->config.relay, "job");
	open_send();
	assert_int_equal(circuits_count(), 1);
}

static void frame_come(void)
{
	peer->in_size = mesh_frame_finish(&request, MESH_FRAME_OPEN);
	memcpy(peer->in, &request, peer->in_size);
	mesh_peer_frames_handle(peer);
}

/* A route that leads through a node twice is no route: it ends the connection, and is counted. */
static void test_loop(void **state)
{
	uint64_t refused = process->counters->refused;

	(void)state;
	frame_come();
	assert_int_equal(circuits_count(), 1);
	request.open.num_relays = 3;
	request.open.route[1] = process->node_id + 1;
	request.open.route[2] = process->node_id;
	frame_come();
	assert_int_equal(circuits_count(), 1); /* the one from before */
	assert_int_equal(process->counters->refused, refused + 1);
	assert_int_equal(peer->state, MESH_PEER_LOST);
}

/* A neighbour from which no circuit may come. */
static void test_outgoing(void **state)
{
	(void)state;
	peer->incoming = false;
	open_send();
	peer->incoming = true;
	assert_int_equal(circuits_count(), 0);
}

/* Frames about circuits that do not exist are for others; those that open answer nothing else. */
static void test_frames(void **state)
{
	struct mesh_circuit *circuit;
	struct mesh_frame frame;
	uint32_t event;

	(void)state;
	open_send();
	circuit = LIST_FIRST(&process->relay->circuits);
	for (event = MESH_CIRCUIT_SHUT; event < MESH_CIRCUIT_EVENTS; event++) {
		memset(&frame, 0, sizeof(frame));
		frame.circuit.event = event;
		frame.circuit.to_comm = circuit->up.sink.id + 1;
		assert_false(mesh_circuit_event(peer, &frame));
		frame.circuit.to_comm = circuit->up.sink.id;
		assert_true(mesh_circuit_event(peer, &frame)); /* it is not open yet */
	}
	memset(&frame, 0, sizeof(frame));
	frame.opened.to_comm = circuit->up.sink.id;
	frame.opened.granule = 4096;
	assert_false(mesh_circuit_opened(peer, &frame));
	memset(&frame, 0, sizeof(frame));
	frame.accept.to_comm = circuit->up.sink.id;
	assert_false(mesh_circuit_accepted(peer, &frame));
	assert_int_equal(circuits_count(), 1);
	assert_false(circuit->shut);
	assert_false(circuit->reported);
}

/* A circuit that is open, and at its next look ends if it may. */
static struct mesh_circuit *circuit_open(void)
{
	struct mesh_circuit *circuit;

	open_send();
	circuit = LIST_FIRST(&process->relay->circuits);
	mesh_circuit_opening_end(circuit);
	circuit->timer.expired = mesh_circuit_ending_expired;
	return circuit;
}

/*
 * The provider may hold bytes that it has read for the circuit's memory, and writes them while it
 * is polled: the memory is not given back before.
 */
static void test_memory_outlives_the_polls(void **state)
{
	struct mesh_circuit *circuit = circuit_open();
	uint64_t before;

	(void)state;
	peer_lose();
	before = atomic_load(&peer->domain->polls);
	circuit->timer.expired(&circuit->timer, mesh_clock_ms());
	assert_int_equal(circuits_count(), 0);
	assert_true(atomic_load(&peer->domain->polls) >= before + 8);
}

/* What is in flight to one side does not keep the link of the other one from being used again. */
static void test_sides_are_apart(void **state)
{
	struct mesh_circuit *circuit = circuit_open();
	struct mesh_peer_user *user = &circuit->up.user;

	(void)state;
	assert_true(user->ops->is_quiet(user));
	circuit->down.unfinished++;
	assert_true(user->ops->is_quiet(user));
	circuit->up.unfinished++;
	assert_false(user->ops->is_quiet(user));
	circuit->up.unfinished = circuit->down.unfinished = 0;
}

/*
 * The connecting node's process connects anew, before this one has lost the link: the circuit is
 * fenced then. A fence of its own, later, would cut the connection that is new.
 */
static void test_fenced_once(void **state)
{
	struct mesh_circuit *circuit = circuit_open();
	struct mesh_peer_user *user = &circuit->up.user;
	uint64_t before;

	(void)state;
	assert_true(user->ops->is_open(user));
	peer_lose();
	user->ops->fenced(user);
	assert_false(user->ops->is_open(user));
	before = atomic_load(&peer->domain->polls);
	circuit->timer.expired(&circuit->timer, mesh_clock_ms());
	assert_int_equal(circuits_count(), 0);
	assert_true(atomic_load(&peer->domain->polls) < before + 8); /* as a fence polls */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outgoing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_outlives_the_polls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sides_are_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fenced_once, setup, teardown),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", "29500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
