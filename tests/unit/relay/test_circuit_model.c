/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_circuit_model.c - circuits in both directions through one to three relays, step by random
 * step: they are opened, refused, used, left idle, shut and withdrawn; links break at any moment
 * and are noticed at any other; one end of a circuit may lie, and may repeat its OPEN.
 *
 * What must hold is what relay_ends.h checks; in the end no relay has a circuit, memory or an
 * operation left; and without a loss all that was sent arrives, whatever one end says that lies.
 *
 *	SEED=N test_circuit_model	that run
 *	SEEDS=N test_circuit_model	so many runs
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "fake_clock.h"
#include "log_capture.h"
#include "relay_ends.h"
#include "unit.h"

#define SEEDS 400
#define STEPS 700
/* In this run the last segment waits for room that only the end of a write makes, not ARRIVED. */
#define SEED_WAITS 1984
/* Bytes of a small message of an end that lies, at most. */
#define PAYLOAD_LIE 1024

/* ---- lies ---------------------------------------------------------------------------------- */

static void circuit_lie(const struct circuit *circuit, struct chain_end *end, bool out, uint32_t id)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = id;
	frame.circuit.event = 1 + chain_roll(MESH_CIRCUIT_EVENTS - 1);
	frame.circuit.writes = chain_roll(2) ? chain_roll(50) : circuit->hop.writes;
	chain_frame_send(end, out, &frame, MESH_FRAME_CIRCUIT);
}

/* Nothing was written there; a segment may lie there that has not arrived yet. */
static void relayed_lie(struct mesh_message_header *header, struct chain_end *end)
{
	bool absurd = !chain_roll(20);
	const struct mesh_message_relayed relayed = {
		.address = absurd ? chain_roll(9) : (uintptr_t)ends.target[0][chain_roll(SEGMENTS)],
		.key = absurd ? chain_roll(9) : MEMORY_KEY(0),
		.length = 1 + chain_roll(absurd ? 1 << 30 : 1 << 14),
		.num_segments = 1 + chain_roll(3),
		.granule = (uint8_t)chain_roll(absurd ? MESH_GRANULES : 3),
		.full = (uint8_t)chain_roll(2),
		.more = ends.cuts && absurd,
	};

	header->type = MESH_MESSAGE_RELAYED;
	header->length = sizeof(relayed);
	chain_message_send(end, header, &relayed);
}

static void message_lie(struct chain_end *end, uint32_t id, uint32_t token)
{
	struct mesh_message_header header = {
		.type = (uint8_t)(1 + chain_roll(MESH_MESSAGE_ARRIVED)),
		.comm = id,
		.token = chain_roll(9) ? token : 1,
		.seq = chain_roll(100),
		.size = chain_roll(1 << 20),
	};
	struct mesh_message_arrived arrived = {.granules = 1ull << chain_roll(64),
					       .limit = 1 + chain_roll(MESH_GRANULES)};
	uint8_t payload[MESH_GRANTS_PER_MESSAGE * sizeof(struct mesh_grant)] = {0};

	switch ((enum mesh_message_type)header.type) {
	case MESH_MESSAGE_RELAYED:
		relayed_lie(&header, end);
		return;
	case MESH_MESSAGE_ARRIVED:
		header.length = sizeof(arrived);
		chain_message_send(end, &header, &arrived);
		return;
	case MESH_MESSAGE_GRANT:
		header.count = header.paths = 1;
		header.length = (uint32_t)mesh_grant_size(1);
		break;
	case MESH_MESSAGE_WRITTEN:
		header.length = sizeof(struct mesh_message_written);
		break;
	case MESH_MESSAGE_DATA:
		header.length = chain_roll(PAYLOAD_LIE);
		break;
	default:
		break;
	}
	chain_message_send(end, &header, payload);
}

static void step_lie(struct circuit *circuit)
{
	bool out = chain_roll(2);
	struct chain_end *end = out ? connector_end(circuit) : listener_end(circuit);
	uint32_t id = out ? circuit->relay_id : circuit->last_id;
	uint32_t token = out ? circuit->relay_token : circuit->last_token;
	int count = chain_roll(60) ? 1 : 300;

	if (!id)
		return;
	if (!chain_roll(20))
		circuit_lie(circuit, end, out, id);
	else if (!chain_roll(20))
		open_send(circuit);
	else if (out && chain_roll(8))
		relayed_lie(&(struct mesh_message_header){.comm = id, .token = token}, end);
	else if (!out && !chain_roll(20))
		circuit->accepted = circuit->ended = false; /* answers once more */
	else
		while (count--)
			message_lie(end, id, token);
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void connector_step(struct circuit *circuit)
{
	if (circuit->phase == NOT_ASKED)
		open_send(circuit);
	if (circuit->phase != OPEN)
		return;
	if (circuit->lost) {
		circuit_end(circuit, MESH_CIRCUIT_SHUT);
		return;
	}
	if (circuit->idle)
		return;
	if (chain_roll(3))
		segment_write(circuit);
	else
		data_send(circuit);
}

static void listener_step(struct circuit *circuit)
{
	connect_answer(circuit);
	if (circuit->accepted && !circuit->ended && chain_roll(2))
		grant_send(circuit);
	if (ends.losses && circuit->accepted && !circuit->ended && !chain_roll(200)) {
		circuit->ended = true; /* the connector goes on over another path */
		lost_send(circuit);
	}
}

/* What the ends do by themselves; none of it is a fault. */
static void ends_step(void)
{
	struct circuit *circuit = &ends.circuits[chain_roll(CIRCUITS)];

	if (connector_end(circuit)->knows) {
		circuit->phase = ENDED;
		circuit_abandon(circuit);
	}
	if (chain_roll(2))
		connector_step(circuit);
	else
		listener_step(circuit);
}

static void step_fault(void)
{
	struct circuit *circuit = &ends.circuits[chain_roll(CIRCUITS)];

	switch (chain_roll(8)) {
	case 0:
		if (ends.losses && !chain_roll(20))
			chain_break(connector_end(circuit));
		break;
	case 1:
		if (ends.losses && !chain_roll(20) && chain.num_nodes > 3)
			chain_break(chain.nodes[1].right);
		break;
	case 2:
		if (circuit->phase == OPEN && !chain_roll(12))
			circuit_end(circuit,
				    chain_roll(2) ? MESH_CIRCUIT_SHUT : MESH_CIRCUIT_WITHDRAWN);
		else if (circuit->phase == ASKED && !chain_roll(8))
			circuit->phase = ENDED; /* OPENED comes in vain */
		break;
	case 3:
		fake_fail(chain_roll(2) ? FAKE_SEND : FAKE_WRITE, 0, (int)chain_roll(3),
			  -FI_EAGAIN);
		break;
	case 4:
		chain_learn_step();
		break;
	default:
		if (ends.lies)
			step_lie(&ends.circuits[0]);
		break;
	}
}

static void step(void)
{
	switch (chain_roll(8)) {
	case 0:
		chain_frame_step();
		break;
	case 1:
	case 2:
		chain_deliver_step();
		break;
	case 3:
		chain_complete_step();
		break;
	case 4:
		step_fault();
		break;
	case 5:
		chain_time_step(chain_roll(10));
		break;
	default:
		ends_step();
		break;
	}
}

/* ---- a run --------------------------------------------------------------------------------- */

/* Everything that is under way arrives, and the ends go on. */
static void settle(uint64_t ms)
{
	bool moved;
	int i;

	do {
		for (i = 0; i < 8 * CIRCUITS; i++)
			ends_step();
		moved = chain_frame_step();
		moved |= chain_deliver_step();
		moved |= chain_complete_step();
		moved |= chain_learn_step();
	} while (moved);
	chain_time_step(ms);
}

static bool is_complete(const struct circuit *circuit)
{
	if (circuit->phase == ENDED || circuit->liar)
		return true;
	if (circuit->phase != OPEN || circuit->lost)
		return false;
	return circuit->granted == SEGMENTS && circuit->grants_seen == SEGMENTS &&
	       circuit->data_seen == circuit->data_sent && !circuit->in_flight &&
	       circuit->started == (circuit->idle ? 0 : SEGMENTS);
}

static bool all_complete(void)
{
	bool complete = true;
	int i;

	for (i = 0; i < CIRCUITS; i++)
		complete &= is_complete(&ends.circuits[i]);
	return complete;
}

static bool all_ended(void)
{
	int i, circuits = 0;

	for (i = 1; i < chain.num_nodes - 1; i++)
		circuits += chain_circuits(i);
	return !circuits && !chain_unfinished();
}

static void run_end(void)
{
	int i, turn;

	for (turn = 0; turn < 400 && !ends.losses && !all_complete(); turn++)
		settle(1);
	assert_true(ends.losses || all_complete());
	for (i = 0; i < CIRCUITS; i++)
		circuit_end(&ends.circuits[i], MESH_CIRCUIT_SHUT);
	/* At first an OPEN may still be under way. */
	for (turn = 0; turn < 400 && (!turn || !all_ended()); turn++) {
		/* One that lies keeps what it has opened for as long as it is there. */
		if (ends.lies && turn == 200)
			chain_break(connector_end(&ends.circuits[0]));
		settle(100);
	}
	while (chain_frame_step()) /* the last words of the relays */
		continue;
	assert_true(all_ended());
}

static void run(int seed)
{
	uint64_t memory[CHAIN_RELAYS_MAX];
	int i;

	/* The relays of a circuit give it pieces of different sizes. */
	for (i = 0; i < CHAIN_RELAYS_MAX; i++)
		memory[i] = (uint64_t)(seed / CHAIN_RELAYS_MAX >> i & 1 ? 3 : 256) << 20;
	log_capture_start();
	chain_open(1 + seed % CHAIN_RELAYS_MAX, (uint64_t)seed, memory);
	chain.scarce = chain_roll(2) ? 5 : 0;
	chain.refuses = chain_roll(2) ? 12 : 0;
	ends_open();
	ends.cuts = seed % 2;
	for (i = 0; i < STEPS; i++)
		step();
	run_end();
	ends_close();
	assert_true(chain.asked >= chain.unfound);
	chain_close();
	log_capture_stop();
}

TEST(random)
{
	int seed, first = 0, end = SEEDS, finished = 0, drained = 0, refused = 0, broken = 0;
	const char *only = getenv("SEED"), *more = getenv("SEEDS");
	int fences = 0, grown = 0;

	if (only)
		first = atoi(only), end = first + 1;
	else if (more)
		end = atoi(more);
	for (seed = first; seed < end; seed++) {
		run(seed);
		finished += ends.finished;
		drained += ends.drained;
		refused += ends.refused;
		broken += ends.broken;
		fences += chain.fences;
		grown += ends.grown;
	}
	print_message("%d segments; %d circuits drained, %d refused, %d broken, %d grown; "
		      "%d fences\n",
		      finished, drained, refused, broken, grown, fences);
	if (only)
		return;
	run(SEED_WAITS);
	/* The steps do what they are for. */
	assert_true(finished > 20 * end);
	assert_true(drained > end / 2 && refused > end / 2);
	assert_true(broken > end / 2 && fences > end / 2);
	assert_true(grown > end / 8);
}

void tests_begin(void)
{
	ends_source_open();
}

void tests_end(void)
{
	ends_source_close();
}
