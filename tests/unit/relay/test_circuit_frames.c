/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuit_frames.c - frames of circuits through three relays. An end asks its relays whether
 * their processes run. An OPEN for which a relay lacks memory
 * leaves nothing. A false SHUT ends its circuit only. And what waits in a relay: for buffers, or
 * for room in the next one.
 */
#include "fabric/remote.h"

#include "circuit_fixture.h"

#define BUFFERS_MAX 600

TESTS_USE(setup, teardown);

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

/* Each relay asks the next one. The one before a stopped one breaks the circuit after 3 s. */
TEST(one_is_stopped)
{
	uint64_t waited;
	int stopped;

	for (stopped = 2; stopped <= RELAYS; stopped++) {
		memset(&came, 0, sizeof(came));
		circuit_open();
		for (waited = 0; waited < 3 * LIMIT_MS; waited += PAUSE_MS)
			assert_int_equal(ask(false).event, MESH_CIRCUIT_ANSWER);
		chain.stopped = 1u << stopped;
		chain_time_step(3 * LIMIT_MS); /* it was not asked in this time */
		for (waited = 0; waited < LIMIT_MS; waited += PAUSE_MS)
			assert_int_equal(ask(false).event, MESH_CIRCUIT_ANSWER);
		assert_int_equal(came.broken[0].event, 0);
		ask(false);
		assert_int_equal(came.broken[0].lost_node, CHAIN_NODE_ID(stopped));
		assert_int_equal(came.broken[0].by_node, CHAIN_NODE_ID(stopped - 1));
		chain.stopped = 0;
		settle();
	}
}

/* LEFT passes from end to end, and ends nothing. */
TEST(left_passes)
{
	struct mesh_frame frame;

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

/*
 * A relay cannot register the memory of a circuit that the next one, or the listener, has accepted:
 * that one learns it, and nobody keeps anything.
 */
TEST(no_memory)
{
	int failing, i;

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
 * The default of NCCL_MESH_RELAY_MEMORY is enough for 2,048 circuits (docs/settings.md), beside all
 * that others may grow to.
 */
TEST(default_memory)
{
	const uint64_t all = 256 << 20, grown = all - all / 4;
	int i;

	for (i = 1; i <= RELAYS; i++) {
		chain.nodes[i].process.config.relay_memory_bytes = all;
		chain.nodes[i].process.relay->memory += grown;
	}
	for (i = 1; i < 2048; i++)
		open_queue();
	open_send();
	assert_int_equal(came.refuse.refusal, 0);
	for (i = 1; i <= RELAYS; i++) {
		assert_int_equal(chain_circuits(i), 2048);
		chain.nodes[i].process.relay->memory -= grown;
	}
	chain_break(chain.nodes[LAST].left); /* which never answers */
}

/*
 * The connecting end says that it has written more than came: its circuit ends everywhere but in
 * the first relay, which keeps the memory; another one on the same link goes on.
 */
TEST(false_shut)
{
	struct mesh_frame_circuit answer;
	struct mesh_frame frame;
	int i;

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
	assert_int_equal(answer.event, MESH_CIRCUIT_ANSWER);
}

/* ---- what waits ---------------------------------------------------------------------------- */

static struct mesh_buffer *taken[BUFFERS_MAX];
static int num_taken;

/* The relay has no buffer for what it sends there. */
static void buffers_take(const struct chain_end *end)
{
	num_taken = 0;
	while ((taken[num_taken] = mesh_remote_buffer_get(end->domain, end->remote)))
		num_taken++;
}

static void buffers_give(int count)
{
	while (count--)
		mesh_buffer_put(taken[--num_taken]);
}

static struct mesh_circuit *circuit_of(int node)
{
	return LIST_FIRST(&chain.nodes[node].process.relay->circuits);
}

/* A message comes to the relay at the end of the link from @end, for that side of its circuit. */
static void message_come(struct chain_end *end, const struct mesh_circuit_side *side,
			 enum mesh_message_type type, uint32_t seq, const void *payload,
			 uint16_t length)
{
	const struct mesh_message_header header = {
		.type = (uint8_t)type,
		.length = length,
		.comm = side->sink.id,
		.token = side->sink.token,
		.seq = seq,
	};

	chain_message_send(end, &header, payload);
	assert_true(chain_deliver_step());
}

static void segment_come(uint8_t granule)
{
	const struct mesh_message_relayed relayed = {
		.length = 100, .num_segments = 1, .granule = granule};

	message_come(chain.nodes[0].right, &circuit_of(1)->up, MESH_MESSAGE_RELAYED, 0, &relayed,
		     sizeof(relayed));
}

/* The first message that has not arrived; it never will. */
static struct chain_post *message_take(struct chain_end *end)
{
	struct chain_post *post;

	TAILQ_FOREACH(post, &end->posts, entry) {
		if (!post->is_write && !post->delivered)
			break;
	}
	assert_non_null(post);
	post->delivered = true;
	return post;
}

/* A message for which there is a buffer waits behind one for which there was none. */
TEST(messages_keep_their_order)
{
	struct chain_end *end = chain.nodes[1].right;
	const struct mesh_message_header *header;
	uint32_t seq;

	circuit_open();
	buffers_take(end);
	message_come(chain.nodes[0].right, &circuit_of(1)->up, MESH_MESSAGE_DATA, 0, "a", 1);
	buffers_give(1);
	message_come(chain.nodes[0].right, &circuit_of(1)->up, MESH_MESSAGE_DATA, 1, "b", 1);
	buffers_give(num_taken);
	chain_poll(end);
	for (seq = 0; seq < 2; seq++) {
		header = (const void *)message_take(end)->bytes;
		assert_int_equal(header->seq, seq);
	}
}

/* What has arrived while the relay could not say so: it says all of it in one message. */
TEST(arrived_together)
{
	struct chain_end *end = chain.nodes[RELAYS].left;
	struct mesh_message_arrived arrived;

	circuit_open();
	segment_come(0);
	segment_come(1);
	while (chain_deliver_step())
		continue;
	buffers_take(end);
	while (chain_complete_step())
		continue;
	buffers_give(num_taken);
	chain_poll(end);
	memcpy(&arrived, message_take(end)->bytes + sizeof(struct mesh_message_header),
	       sizeof(arrived));
	assert_int_equal(arrived.granules, 3);
}

/* ARRIVED comes before the write is complete: its completion makes the room, for what waits. */
TEST(arrived_before_written)
{
	const struct mesh_message_arrived arrived = {.granules = 1, .limit = 1};
	struct chain_end *end = chain.nodes[1].right;

	circuit_open();
	circuit_of(1)->hop.limit = 1;
	segment_come(0);
	segment_come(1);
	while (chain_deliver_step())
		continue;
	assert_int_equal(circuit_of(1)->num_waiting, 1);
	message_come(end->other, &circuit_of(1)->down, MESH_MESSAGE_ARRIVED, 0, &arrived,
		     sizeof(arrived));
	assert_int_equal(circuit_of(1)->num_waiting, 1);
	while (chain_complete_step())
		continue;
	assert_int_equal(circuit_of(1)->num_waiting, 0);
}
