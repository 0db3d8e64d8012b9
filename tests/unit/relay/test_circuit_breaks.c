/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuit_breaks.c - what breaks circuits through three relays. A relay whose operation fails,
 * or to which a node sends what it must not, logs which, and where; a process that ends is reported
 * as such; a fence that fails keeps the memory that it protects.
 */
#include "circuit_fixture.h"

TESTS_USE(setup, teardown);

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
TEST(write_is_refused)
{
	circuit_open();
	segment_send(100);
	fake_fail(FAKE_WRITE, 0, 1, -FI_EIO);
	assert_true(chain_deliver_step());
	assert_broken(1, 2, EIO,
		      "relay: the circuit from node origin to node target is broken: a write from "
		      "10.7.0.1 (eth7) to node c (10.7.0.2) failed: Input/output error");
}

/* The provider reports that the write has failed, and why. */
TEST(write_fails)
{
	struct chain_end *end = chain.nodes[1].right;
	struct chain_post *post;

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
TEST(message_fails)
{
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
TEST(wrong_messages)
{
	circuit_open();
	listener_send(MESH_MESSAGE_DATA, 0);
	assert_true(chain_deliver_step());
	assert_broken(RELAYS, LAST, EPROTO,
		      "is broken: node e (10.7.0.2) has sent a message of a type that does not "
		      "come from there to 10.7.0.1 (eth7)");
}

TEST(wrong_segment)
{
	circuit_open();
	segment_send(UINT32_MAX);
	assert_true(chain_deliver_step());
	assert_broken(1, 0, EPROTO,
		      "is broken: node a (10.7.0.2) has sent a segment that does not fit to ");
}

/* A link that is lost is named with its reason, and no errno goes to the ends. */
TEST(link_is_lost)
{
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
TEST(process_ends_later)
{
	struct mesh_frame frame = {.circuit = {.event = MESH_CIRCUIT_SHUT, .writes = 1}};

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
	open_send();
	assert_int_equal(came.refuse.refusal, MESH_REFUSAL_COOKIE);
}

/* A fence that has begun is stepped to its end, also if what was in flight there ends before. */
TEST(fence_goes_on)
{
	struct mesh_frame frame = {.circuit = {.event = MESH_CIRCUIT_SHUT, .writes = 1}};
	struct chain_end *end = chain.nodes[1].right;
	struct mesh_circuit *circuit;
	struct mesh_peer_user *user;

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
	assert_false(
		user->ops->answers[MESH_USER_IS_QUIET](user)); /* nobody may connect anew there */
	chain_time_step(10);
	chain_time_step(10);
	assert_int_equal(chain.fences_begun, 0);
	assert_true(user->ops->answers[MESH_USER_IS_QUIET](user));
}

/* What the lost connecting end has sent may still be written into the memory: it is kept. */
TEST(fence_fails)
{
	struct mesh_circuit *circuit;

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
	assert_true(circuit->up.state < MESH_SIDE_FENCED);
	chain.fences_fail = false;
	chain_time_step(11000);
	settle();
	assert_int_equal(chain_circuits(1), 0);
}
