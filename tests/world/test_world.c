/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world.c - streams between processes whose cables are pulled, swallow packets and are reset,
 * and whose descriptors run out, at moments that a seed draws; with "all" also processes that are
 * stopped and killed, and streams that begin and end. Each byte is checked; no stream may fail but
 * for the end of one of its processes, and each one goes on soon after all is well.
 *
 * Usage: test_world [SEED [FAULTS [CABLING [all]]]]     (default: seed 1, 100 faults, pair)
 * MESH_BUILD   the build folder (default build)
 * WORLD_TRACE  prints what happens, with the plugin's log
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "play.h"

/* No further cable fails while a pair has been without one for so long. */
#define ILL_NS (5 * WORLD_S)
/* What takes the last way of a pair ends within this: recovery does not wait for ever. */
#define LAST_WAY_NS (3 * WORLD_S)

/* What the world was told to do, and will undo. */
struct fault {
	bool is_on;
	uint64_t until_ns;
};

static struct fault cables[PLAY_CABLES_MAX];
static struct fault descriptors[PLAY_RANKS_MAX], freezes[PLAY_RANKS_MAX], kills[PLAY_RANKS_MAX];
static int faults_left;
static bool all_kinds; /* also of processes and streams */
static uint64_t next_fault_ns;

/* Mostly short. */
static uint64_t duration_draw(void)
{
	static const uint64_t limits_ms[] = {50, 500, 500, 3000, 12000};

	return (1 + world_draw(limits_ms[world_draw(5)])) * WORLD_MS;
}

/* For one that has begun. */
static void fault_shorten(struct fault *fault)
{
	uint64_t limit_ns = world.now_ns + LAST_WAY_NS;

	play_look();
	if (!play_is_well() && fault->until_ns > limit_ns)
		fault->until_ns = limit_ns;
}

static void cable_fails(int cable)
{
	if (cables[cable].is_on)
		return;
	cables[cable] = (struct fault){true, world.now_ns + duration_draw()};
	world_cable_set(cable, WORLD_CABLE_DOWN + world_draw(2));
	fault_shorten(&cables[cable]);
}

static void descriptors_end(int rank)
{
	if (descriptors[rank].is_on || kills[rank].is_on || !play_is_connected())
		return;
	descriptors[rank] = (struct fault){true, world.now_ns + duration_draw()};
	world_descriptors_limit(play.ranks[rank].node, true);
	fault_shorten(&descriptors[rank]);
}

static void process_freezes(int rank)
{
	if (freezes[rank].is_on || kills[rank].is_on)
		return;
	freezes[rank] = (struct fault){true, world.now_ns + duration_draw()};
	world_freeze(play.ranks[rank].node, true);
	fault_shorten(&freezes[rank]);
}

static void process_ends(int rank)
{
	if (freezes[rank].is_on || kills[rank].is_on || descriptors[rank].is_on)
		return;
	kills[rank] = (struct fault){true, world.now_ns + duration_draw()};
	play_kill(rank);
}

/* It comes to its end in order, or one of its ends is closed before that. */
static void stream_ends(struct stream *stream)
{
	struct stream_end *end = world_draw(2) ? &stream->send : &stream->receive;

	if (stream->state != STREAM_RUNS || stream->doomed_ns || end->rank->node->frozen)
		return;
	if (world_draw(2))
		stream_stop(stream);
	else
		stream_abort(stream, end);
}

static void fault_begin(void)
{
	int cable = (int)world_draw((uint64_t)world.num_cables);
	int rank = (int)world_draw((uint64_t)play.num_ranks);
	uint64_t latest_ns = world.now_ns - ILL_NS;

	next_fault_ns = world.now_ns + duration_draw();
	for (int i = 0; i < play.num_pairs; i++) {
		if (play.pairs[i].ill_since_ns && play.pairs[i].ill_since_ns < latest_ns)
			return; /* enough for now */
	}
	faults_left--;
	switch (world_draw(all_kinds ? 12 : 8)) {
	case 0:
	case 1:
		world_cable_reset(cable);
		break;
	case 2:
		descriptors_end(rank);
		break;
	case 8:
		process_freezes(rank);
		break;
	case 9:
		process_ends(rank);
		break;
	case 10:
	case 11:
		stream_ends(play_stream_draw());
		break;
	default:
		cable_fails(cable);
	}
}

static bool fault_is_over(struct fault *fault)
{
	if (!fault->is_on || fault->until_ns > world.now_ns)
		return false;
	fault->is_on = false;
	return true;
}

/* Without a carrier the plugin does not start. */
static bool all_cables_are_down(int rank)
{
	const struct world_node *node = play.ranks[rank].node;

	for (int i = 0; i < node->num_nics; i++) {
		if (world.cables[node->nics[i].cable].state != WORLD_CABLE_DOWN)
			return false;
	}
	return true;
}

static void faults_turn(void)
{
	for (int i = 0; i < world.num_cables; i++) {
		if (fault_is_over(&cables[i]))
			world_cable_set(i, WORLD_CABLE_UP);
	}
	for (int i = 0; i < play.num_ranks; i++) {
		if (fault_is_over(&descriptors[i]))
			world_descriptors_limit(play.ranks[i].node, false);
		if (fault_is_over(&freezes[i]))
			world_freeze(play.ranks[i].node, false);
		if (!all_cables_are_down(i) && fault_is_over(&kills[i]))
			play_restart(i);
	}
	/*
	 * A comm that loses a link while its last path is being accepted is given up, and its
	 * listener may have handed it to NCCL: what is promised holds from then on.
	 */
	if (faults_left && world.now_ns >= next_fault_ns && play_is_connected())
		fault_begin();
	play_look();
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	faults_left = argc > 2 ? atoi(argv[2]) : 100;
	all_kinds = argc > 4 && !strcmp(argv[4], "all");
	play_begin(seed, argc > 3 ? argv[3] : "pair");
	next_fault_ns = world.now_ns + WORLD_S;
	while (faults_left || !play_is_well() || world.now_ns < next_fault_ns) {
		play_turn();
		faults_turn();
	}
	play_end(seed);
	_exit(0); /* the plugin's threads go on */
}
