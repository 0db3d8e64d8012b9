/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuit_full.c - a circuit whose target takes nothing: its memory in the relay stays full,
 * the circuit waits, without a limit and at no cost to the one in the other direction, and goes on
 * when the target does.
 */
#include <string.h>

#include "fake_clock.h"
#include "log_capture.h"
#include "relay_ends.h"
#include "unit.h"

/* With this seed both listeners accept. */
#define SEED 2
#define TURNS 4000
/* Each circuit gets 1 MiB: all segments of one fill it. */
#define MEMORY ((uint64_t)36 << 20)
/* So many more of them than an end has in flight otherwise. */
#define MORE 8

static struct circuit *const stuck = &ends.circuits[0], *const other = &ends.circuits[1];

/* What the relay writes to the target stays in flight. */
static void writes_hold(bool held)
{
	struct chain_post *post;

	chain_posts_take(FAKE_SEND);
	TAILQ_FOREACH(post, &chain.nodes[1].right->posts, entry) {
		if (post->is_write && !post->completed)
			post->held = held;
	}
}

static void ends_step(struct circuit *circuit)
{
	connect_answer(circuit);
	if (circuit->accepted)
		grant_send(circuit);
	if (circuit->phase == OPEN)
		segment_write(circuit);
}

static void turns(int count, bool held)
{
	while (count--) {
		ends_step(stuck);
		ends_step(other);
		chain_frame_step();
		chain_deliver_step();
		writes_hold(held);
		chain_complete_step();
		chain_time_step(1);
	}
}

static bool is_complete(const struct circuit *circuit)
{
	return circuit->started == SEGMENTS && !circuit->in_flight;
}

static void open_both(void)
{
	const uint64_t memory[CHAIN_RELAYS_MAX] = {MEMORY};

	chain_open(1, SEED, memory);
	ends_open();
	ends.losses = ends.lies = chain.hostile = false;
	stuck->liar = false;
	stuck->from = other->to = 0;
	stuck->to = other->from = 2;
	open_send(stuck);
	open_send(other);
}

TEST(target_takes_nothing)
{
	const struct mesh_relay *relay;
	int k;

	log_capture_start();
	open_both();
	relay = chain.nodes[1].process.relay;
	stuck->in_flight = -MORE;
	turns(TURNS, true);
	stuck->in_flight += MORE;
	assert_true(stuck->phase == OPEN && other->phase == OPEN);
	assert_true(is_complete(other));
	assert_int_equal(ends.finished, SEGMENTS);
	assert_int_equal(stuck->started, SEGMENTS);
	assert_false(mesh_hop_has_room(&stuck->hop, 1));
	assert_int_equal(relay->memory, 2 << 20);
	for (k = 0; k < 60; k++) /* longer than any limit of the relay's */
		chain_time_step(1000);
	assert_int_equal(chain_circuits(1), 2);
	assert_true(!stuck->lost && !chain.fences && !ends.broken);
	turns(TURNS, false);
	assert_true(is_complete(stuck));
	assert_int_equal(ends.finished, 2 * SEGMENTS);
	circuit_end(stuck, MESH_CIRCUIT_SHUT);
	circuit_end(other, MESH_CIRCUIT_SHUT);
	turns(TURNS, false);
	ends_close();
	chain_close();
	log_capture_stop();
}

void tests_begin(void)
{
	ends_source_open();
}

void tests_end(void)
{
	ends_source_close();
}
