/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuit_fixture.h - a circuit through three relays (relay_chain.h), whose two ends the test
 * plays. Each test that uses it has the ldflags of test_circuit_frames.
 */
#ifndef MESH_TESTS_CIRCUIT_FIXTURE_H
#define MESH_TESTS_CIRCUIT_FIXTURE_H

#include <rdma/fi_errno.h>

#include "nic/rdma_port.h"
#include "relay/circuit.h"
#include "relay/relay.h"

#include "fake_clock.h"
#include "log_capture.h"
#include "relay_chain.h"
#include "unit.h"

/* a - b - c - d - e, with three relays. */
#define RELAYS 3
#define LAST (RELAYS + 1)
#define COMM_KEY 5
#define CONNECTOR_ID 77
#define LISTENER_ID 88
#define PAUSE_MS 400
#define LIMIT_MS 3000

static struct {
	struct mesh_frame_opened opened; /* comm 0: not yet */
	struct mesh_frame_refuse refuse;
	struct mesh_frame_connect connect;
	struct mesh_frame_withdraw withdraw;
	struct mesh_frame_circuit circuit[2]; /* the latest, at either end; event 0: none */
	struct mesh_frame_circuit broken[2];  /* the latest LOST, at either end */
	bool lost, drained;		      /* both came to the listener */
	int circuits[2];
} came;

static void frame_came(struct chain_end *end, bool out, const struct mesh_frame *frame)
{
	(void)out;
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_OPENED:
		came.opened = frame->opened;
		break;
	case MESH_FRAME_REFUSE:
		came.refuse = frame->refuse;
		break;
	case MESH_FRAME_CONNECT:
		came.connect = frame->connect;
		break;
	case MESH_FRAME_WITHDRAW:
		came.withdraw = frame->withdraw;
		break;
	case MESH_FRAME_CIRCUIT:
		came.lost |= end->node == LAST && frame->circuit.event == MESH_CIRCUIT_LOST;
		came.drained |= end->node == LAST && frame->circuit.event == MESH_CIRCUIT_DRAINED;
		came.circuit[end->node == LAST] = frame->circuit;
		if (frame->circuit.event == MESH_CIRCUIT_LOST)
			came.broken[end->node == LAST] = frame->circuit;
		came.circuits[end->node == LAST]++;
		break;
	default:
		fail_msg("an unexpected frame");
	}
}

/* Everything that is under way arrives, and the relays look at their circuits. */
static void settle(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		while (chain_frame_step())
			continue;
		chain_time_step(0);
	}
}

static void open_queue(void)
{
	struct mesh_handle handle = {
		.node_id = CHAIN_NODE_ID(LAST),
		.cookie = 7,
		.listen_id = 1,
		.control_port = 1,
		.num_endpoints = 1,
		.total_nics = 1,
	};
	struct mesh_frame frame;
	int i;

	mesh_addr_parse("10.7.0.2/24", &handle.endpoints[0].addr);
	handle.endpoints[0].provider = MESH_PROVIDER_TCP;
	strcpy(handle.node, "target");
	memset(&frame, 0, sizeof(frame));
	mesh_handle_encode(&handle, frame.open.handle);
	frame.open.comm_key = COMM_KEY;
	frame.open.comm = CONNECTOR_ID;
	frame.open.token = 1;
	frame.open.num_paths = 1;
	frame.open.num_relays = RELAYS;
	for (i = 0; i < RELAYS; i++)
		frame.open.route[i] = CHAIN_NODE_ID(i + 1);
	strcpy(frame.open.origin, "origin");
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_OPEN);
}

static void open_send(void)
{
	int i;

	open_queue();
	for (i = 0; i < RELAYS; i++) {
		settle();
		chain_time_step(10);
	}
	settle();
}

/* OPEN, which the listener accepts. */
static void open_accept(void)
{
	struct mesh_frame frame;

	open_send();
	assert_int_equal(came.connect.comm_key, COMM_KEY);
	memset(&frame, 0, sizeof(frame));
	frame.accept.to_comm = came.connect.comm;
	frame.accept.comm = LISTENER_ID;
	chain_frame_send(chain.nodes[LAST].left, false, &frame, MESH_FRAME_ACCEPT);
	settle();
}

static void circuit_open(void)
{
	open_accept();
	assert_true(came.opened.comm);
}

static int setup(void)
{
	int i;

	log_capture_start();
	memset(&came, 0, sizeof(came));
	chain_open(RELAYS);
	chain.frame_came = frame_came;
	for (i = 0; i < 2 * (chain.num_nodes - 1); i++) {
		mesh_addr_parse("10.7.0.2/24", &chain.ends[i].peers[0].address.addr);
		mesh_addr_parse("10.7.0.2/24", &chain.ends[i].peers[1].address.addr);
	}
	for (i = 0; i < chain.num_nodes; i++)
		chain.nodes[i].process.config.dead_peer_timeout_s = 10;
	return 0;
}

static int teardown(void)
{
	chain.stopped = 0;
	chain_break(chain.nodes[0].right);
	while (chain_learn_step())
		continue;
	settle();
	while (chain_deliver_step() || chain_complete_step())
		continue;
	chain_time_step(1100);
	settle();
	chain_close();
	log_capture_stop();
	return 0;
}

#endif
