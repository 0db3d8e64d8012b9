/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuit_frames.c - frames of circuits through three relays. An end asks its relays whether
 * their processes run: each answers for the one behind it. OPEN as a trial leads there, and leaves
 * nothing; neither does one for which a relay lacks memory. A false SHUT ends its circuit only. A
 * relay whose operation fails, or to which a node sends what it must not, logs which, and where.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/fi_errno.h>

#include "nic/rdma_error.h"
#include "relay/circuit.h"
#include "relay/relay.h"

#include "fake_clock.h"
#include "log_capture.h"
#include "relay_chain.h"

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

static void open_send(bool trial)
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
	frame.open.trial = trial;
	for (i = 0; i < RELAYS; i++)
		frame.open.route[i] = CHAIN_NODE_ID(i + 1);
	strcpy(frame.open.origin, "origin");
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_OPEN);
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

	open_send(false);
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

static int setup(void **state)
{
	uint64_t memory[RELAYS] = {64 << 20, 64 << 20, 64 << 20};
	int i;

	(void)state;
	log_capture_start();
	memset(&came, 0, sizeof(came));
	chain_open(RELAYS, 1, memory);
	chain.frame_came = frame_came;
	for (i = 0; i < 2 * (chain.num_nodes - 1); i++) {
		mesh_addr_parse("10.7.0.2/24", &chain.ends[i].peers[0].address.addr);
		mesh_addr_parse("10.7.0.2/24", &chain.ends[i].peers[1].address.addr);
	}
	for (i = 0; i < chain.num_nodes; i++)
		chain.nodes[i].process.config.dead_peer_timeout_s = 10;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
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

/* The connector, or the listener, asks; returns the answer that is there after that. */
static struct mesh_frame_circuit ask(bool listener)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = listener ? came.connect.comm : came.opened.comm;
	frame.circuit.event = MESH_CIRCUIT_ASK;
	came.circuit[listener].event = 0;
	chain_frame_send(listener ? chain.nodes[LAST].left : chain.nodes[0].right, !listener,
			 &frame, MESH_FRAME_CIRCUIT);
	settle();
	chain_time_step(PAUSE_MS);
	return came.circuit[listener];
}

static void ask_for(bool listener, uint64_t ms)
{
	uint64_t waited;

	for (waited = 0; waited < ms; waited += PAUSE_MS)
		ask(listener);
}

static void assert_named(const struct mesh_frame_circuit *answer, int lost, int by)
{
	assert_int_equal(answer->event, MESH_CIRCUIT_ANSWER);
	assert_int_equal(answer->lost_node, lost ? CHAIN_NODE_ID(lost) : 0);
	assert_int_equal(answer->lost[0], lost ? 'a' + lost : 0);
	assert_int_equal(answer->by_node, lost ? CHAIN_NODE_ID(by) : 0);
}

/* All of them run, for however long; the node at the other end is not asked. */
static void test_all_run(void **state)
{
	struct mesh_frame_circuit answer;

	(void)state;
	circuit_open();
	ask_for(false, 3 * LIMIT_MS);
	answer = ask(false);
	assert_named(&answer, 0, 0);
	assert_int_equal(answer.to_comm, CONNECTOR_ID);
	ask_for(true, 3 * LIMIT_MS);
	answer = ask(true);
	assert_named(&answer, 0, 0);
	assert_int_equal(answer.to_comm, LISTENER_ID);
}

/* The relay before the stopped one says so after 3 s; when that runs again, no longer. */
static void test_one_is_stopped(void **state)
{
	struct mesh_frame_circuit answer;
	int stopped;

	(void)state;
	circuit_open();
	for (stopped = 2; stopped <= RELAYS; stopped++) {
		chain.stopped = 1u << stopped;
		answer = ask(false);
		assert_named(&answer, 0, 0);
		ask_for(false, LIMIT_MS - PAUSE_MS);
		answer = ask(false);
		answer = ask(false);
		assert_named(&answer, stopped, stopped - 1);
		chain.stopped = 0;
		settle();
		ask(false);
		answer = ask(false);
		assert_named(&answer, 0, 0);
	}
	/* Seen from the listener the first one is behind the others. */
	chain.stopped = 1u << 1;
	ask_for(true, LIMIT_MS + PAUSE_MS);
	answer = ask(true);
	assert_named(&answer, 1, 2);
	/* It answers nothing itself. */
	answer = ask(false);
	assert_int_equal(answer.event, 0);
	chain.stopped = 0;
	settle();
}

/* A relay that was stopped itself, or was not asked for long, does not count that time. */
static void test_own_stop(void **state)
{
	struct mesh_frame_circuit answer;

	(void)state;
	circuit_open();
	chain.stopped = 1u << 2;
	ask(false);
	chain_time_step(3 * LIMIT_MS);
	answer = ask(false);
	assert_named(&answer, 0, 0);
	ask_for(false, LIMIT_MS);
	answer = ask(false);
	assert_named(&answer, 2, 1);
	chain.stopped = 0;
	settle();
}

/* LEFT passes from end to end, and ends nothing. */
static void test_left_passes(void **state)
{
	struct mesh_frame frame;

	(void)state;
	circuit_open();
	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = came.connect.comm;
	frame.circuit.event = MESH_CIRCUIT_LEFT;
	frame.circuit.writes = 3;
	chain_frame_send(chain.nodes[LAST].left, false, &frame, MESH_FRAME_CIRCUIT);
	settle();
	assert_int_equal(came.circuit[0].event, MESH_CIRCUIT_LEFT);
	assert_int_equal(came.circuit[0].writes, 3);
	frame.circuit.to_comm = came.opened.comm;
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_CIRCUIT);
	settle();
	assert_int_equal(came.circuit[1].event, MESH_CIRCUIT_LEFT);
	assert_int_equal(came.circuits[0] + came.circuits[1], 2);
	assert_int_equal(chain_circuits(2), 1);
}

/* A trial is answered by the last relay, and the listener learns nothing. */
static void test_trial(void **state)
{
	int i;

	(void)state;
	open_send(true);
	assert_int_equal(came.refuse.refusal, MESH_REFUSAL_RELAY_TRIED);
	assert_int_equal(came.refuse.comm, CONNECTOR_ID);
	assert_int_equal(came.connect.comm, 0);
	for (i = 1; i <= RELAYS; i++)
		assert_int_equal(chain_circuits(i), 0);
}

/*
 * A relay cannot register the memory of a circuit that the next one, or the listener, has accepted:
 * that one learns it, and nobody keeps anything.
 */
static void test_no_memory(void **state)
{
	int failing, i;

	(void)state;
	/* The last relay is the first one that registers, on each of its two links. */
	for (failing = 0; failing < 2 * RELAYS; failing++) {
		memset(&came, 0, sizeof(came));
		fake_fail(FAKE_MR, failing, 1, -FI_ENOMEM);
		open_accept();
		for (i = 0; i < 5; i++)
			settle();
		assert_int_equal(came.opened.comm, 0);
		assert_int_equal(came.refuse.refusal, MESH_REFUSAL_RELAY_FULL);
		assert_int_equal(came.withdraw.comm_key, COMM_KEY);
		assert_true(came.lost && came.drained);
		for (i = 1; i <= RELAYS; i++)
			assert_int_equal(chain_circuits(i), 0);
	}
}

/*
 * The connecting end says that it has written more than came: its circuit ends everywhere but in
 * the first relay, which keeps the memory; another one on the same link goes on.
 */
static void test_false_shut(void **state)
{
	struct mesh_frame_circuit answer;
	struct mesh_frame frame;
	int i;

	(void)state;
	circuit_open();
	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = came.opened.comm;
	frame.circuit.event = MESH_CIRCUIT_SHUT;
	frame.circuit.writes = 1;
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_CIRCUIT);
	settle();
	came.connect.comm = came.opened.comm = 0;
	circuit_open();
	for (i = 1; i <= RELAYS; i++)
		assert_int_equal(chain_circuits(i), 2);
	chain_time_step(10100);
	for (i = 0; i < 5; i++) {
		settle();
		chain_time_step(200);
	}
	assert_int_equal(chain.fences, 0);
	assert_true(came.lost && came.drained);
	assert_int_equal(chain_circuits(1), 2);
	for (i = 2; i <= RELAYS; i++)
		assert_int_equal(chain_circuits(i), 1);
	answer = ask(false);
	assert_named(&answer, 0, 0);
}

/* RELAYED for the first relay, with nothing in its memory. */
static void segment_send(uint32_t length)
{
	const struct mesh_message_relayed relayed = {
		.length = length,
		.num_segments = 1,
	};
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_RELAYED,
		.length = sizeof(relayed),
		.comm = came.opened.comm,
		.token = came.opened.token,
	};

	chain_message_send(chain.nodes[0].right, &header, &relayed);
}

/* The listener sends a message of this type with @length bytes. */
static void listener_send(enum mesh_message_type type, uint16_t length)
{
	static const uint8_t payload[CHAIN_PAYLOAD_MAX];
	const struct mesh_message_header header = {
		.type = type,
		.length = length,
		.comm = came.connect.comm,
		.token = came.connect.token,
	};

	chain_message_send(chain.nodes[LAST].left, &header, payload);
}

/* LOST came to both ends: node @by has lost node @lost, with this errno. */
static void assert_broken(int by, int lost, int error, const char *line)
{
	int i;

	settle();
	for (i = 0; i < 2; i++) {
		assert_int_equal(came.broken[i].event, MESH_CIRCUIT_LOST);
		assert_int_equal(came.broken[i].error, error);
		assert_int_equal(came.broken[i].lost_node, CHAIN_NODE_ID(lost));
		assert_int_equal(came.broken[i].by_node, CHAIN_NODE_ID(by));
	}
	assert_true(log_captured(MESH_LOG_INFO, line));
}

/* The provider refuses the first relay's write. */
static void test_write_is_refused(void **state)
{
	(void)state;
	circuit_open();
	segment_send(100);
	fake_fail(FAKE_WRITE, 0, 1, -FI_EIO);
	assert_true(chain_deliver_step());
	assert_broken(1, 2, EIO,
		      "relay: the circuit from node origin to node target is broken: a write from "
		      "10.7.0.1 (eth7) to node c (10.7.0.2) failed: Input/output error");
}

/* The provider reports that the write has failed, and why. */
static void test_write_fails(void **state)
{
	struct chain_end *end = chain.nodes[1].right;
	struct chain_post *post;

	(void)state;
	circuit_open();
	segment_send(100);
	assert_true(chain_deliver_step());
	end->domain->provider = MESH_PROVIDER_VERBS_RXM;
	TAILQ_FOREACH(post, &end->posts, entry) {
		if (post->is_write)
			break;
	}
	assert_non_null(post);
	post->completed = true;
	fake_complete_status(post->context, FI_EIO, MESH_RDMA_FLUSHED);
	chain_post_free(end, post);
	chain_poll(end);
	assert_broken(1, 2, ECONNRESET,
		      "a write from 10.7.0.1 (eth7) to node c (10.7.0.2) failed: Connection reset "
		      "by peer (the RDMA connection had failed before or was closed (work request "
		      "flushed))");
}

/* A message towards the connecting end fails: the circuit is broken there, not behind the relay. */
static void test_message_fails(void **state)
{
	(void)state;
	circuit_open();
	listener_send(MESH_MESSAGE_POSTED, 0);
	fake_fail(FAKE_SEND, 0, 2, -FI_EIO); /* the poll tries again */
	assert_true(chain_deliver_step());
	chain_poll(chain.nodes[RELAYS].left);
	assert_broken(RELAYS, RELAYS - 1, EIO,
		      "a message from 10.7.0.1 (eth7) to node c (10.7.0.2) failed: Input/output "
		      "error");
}

/* A node that sends what it must not is named. */
static void test_wrong_messages(void **state)
{
	(void)state;
	circuit_open();
	listener_send(MESH_MESSAGE_DATA, 0);
	assert_true(chain_deliver_step());
	assert_broken(RELAYS, LAST, EPROTO,
		      "is broken: node e (10.7.0.2) has sent a message of a type that does not "
		      "come from there to 10.7.0.1 (eth7)");
}

static void test_wrong_segment(void **state)
{
	(void)state;
	circuit_open();
	segment_send(UINT32_MAX);
	assert_true(chain_deliver_step());
	assert_broken(1, 0, EPROTO,
		      "is broken: node a (10.7.0.2) has sent a segment that does not fit to ");
}

/* A link that is lost is named with its reason, and no errno goes to the ends. */
static void test_link_is_lost(void **state)
{
	(void)state;
	circuit_open();
	chain_break(chain.nodes[2].right);
	while (chain_learn_step())
		continue;
	settle();
	assert_int_equal(came.broken[0].error, 0);
	assert_int_equal(came.broken[0].lost_node, CHAIN_NODE_ID(3));
	assert_true(log_captured(MESH_LOG_INFO, "is broken: node d (10.7.0.2) is lost"));
	assert_true(log_captured(MESH_LOG_INFO, "is broken: node c (10.7.0.2) is lost"));
}

/* The listener's node learns that the process at its end of the last link has ended. */
static void listener_ends(void)
{
	chain.nodes[RELAYS].right->peers[0].over = chain.nodes[RELAYS].right->peers[1].over = true;
	chain_break(chain.nodes[RELAYS].right);
	while (chain_learn_step())
		continue;
	settle();
}

/*
 * A write to the listener fails before its process is known to have ended. That is reported later,
 * although the connecting end has shut the circuit; and one that is asked for again is refused.
 */
static void test_process_ends_later(void **state)
{
	struct mesh_frame frame = {.circuit = {.event = MESH_CIRCUIT_SHUT, .writes = 1}};

	(void)state;
	circuit_open();
	segment_send(100);
	fake_fail(FAKE_WRITE, RELAYS - 1, 1, -FI_EIO);
	while (chain_deliver_step() || chain_complete_step())
		continue;
	assert_broken(RELAYS, LAST, EIO, "a write from 10.7.0.1 (eth7) to node e (10.7.0.2)");
	assert_false(came.broken[0].unclean);
	frame.circuit.to_comm = came.opened.comm;
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_CIRCUIT);
	settle();
	listener_ends();
	assert_true(came.broken[0].unclean);
	assert_int_equal(came.broken[0].lost_node, CHAIN_NODE_ID(LAST));
	open_send(false);
	assert_int_equal(came.refuse.refusal, MESH_REFUSAL_COOKIE);
}

/* A fence that has begun is stepped to its end, also if what was in flight there ends before. */
static void test_fence_goes_on(void **state)
{
	struct mesh_frame frame = {.circuit = {.event = MESH_CIRCUIT_SHUT, .writes = 1}};
	struct chain_end *end = chain.nodes[1].right;
	struct mesh_circuit *circuit;
	struct mesh_peer_user *user;

	(void)state;
	circuit_open();
	circuit = LIST_FIRST(&chain.nodes[1].process.relay->circuits);
	end->domain->provider = MESH_PROVIDER_VERBS_RXM;
	circuit->down.unfinished++;
	frame.circuit.to_comm = came.opened.comm;
	chain_frame_send(chain.nodes[0].right, true, &frame, MESH_FRAME_CIRCUIT);
	chain_break(end);
	while (chain_learn_step())
		continue;
	settle();
	chain.fence_steps = 3;
	chain_time_step(1100);
	assert_int_equal(chain.fences_begun, 1);
	circuit->down.unfinished--;
	user = &circuit->down.user;
	assert_false(user->ops->is_quiet(user)); /* nobody may connect anew there */
	chain_time_step(10);
	chain_time_step(10);
	assert_int_equal(chain.fences_begun, 0);
	assert_true(user->ops->is_quiet(user));
}

/* What the lost connecting end has sent may still be written into the memory: it is kept. */
static void test_fence_fails(void **state)
{
	struct mesh_circuit *circuit;

	(void)state;
	circuit_open();
	circuit = LIST_FIRST(&chain.nodes[1].process.relay->circuits);
	chain.fences_fail = true;
	chain_break(chain.nodes[0].right);
	while (chain_learn_step())
		continue;
	settle();
	chain_time_step(11000);
	chain_time_step(11000);
	assert_int_equal(chain_circuits(1), 1);
	assert_ptr_equal(LIST_FIRST(&chain.nodes[1].process.relay->circuits), circuit);
	assert_false(circuit->fenced_up);
	chain.fences_fail = false;
	chain_time_step(11000);
	settle();
	assert_int_equal(chain_circuits(1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_is_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trial, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_false_shut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_message_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_messages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process_ends_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fence_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fence_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
