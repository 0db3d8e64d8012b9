/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world_pulled.c - a cable that is lost for good, or carries nothing from now on, at a drawn
 * moment under load: no stream fails, and none stands for longer than docs/protocol/recovery.md
 * says, as another way is left.
 *
 * Usage: test_world_pulled [NAME...]     (default: all of them)
 * WORLD_SEED   draws the moments and the cables (default 1)
 */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

/* The cables go within the first of these times, and all is watched for the second one. */
#define DRAW_MS 1000
#define WATCH_NS (5 * WORLD_S)

static const struct pulled_case {
	const char *name, *cabling;
	int cables; /* how many go at once */
} cases[] = {
	{"pair", "pair", 1},	     {"triangle", "triangle", 1}, {"square", "square", 1},
	{"pentagon", "pentagon", 1}, {"full", "full", 1},	  {"two-of-full", "full", 2},
};

/* How they go. */
static const struct pulled_how {
	const char *suffix;
	enum world_cable_state state;
	uint64_t gap_ms;
} hows[] = {{"", WORLD_CABLE_DOWN, 1000}, {"-silent", WORLD_CABLE_HOLE, 4000}};

/* Of each pair: a stream one way; or two each way, 16 in all where there are four pairs. */
static const int streams[] = {1, PLAY_STREAMS_MAX};

#define NUM_CASES (int)(sizeof(cases) / sizeof(cases[0]))

static void turns_until(uint64_t ns)
{
	while (world.now_ns < ns)
		play_turn();
}

static void pulled_run(int number)
{
	const struct pulled_case *test = &cases[number / 4];
	const struct pulled_how *how = &hows[number / 2 % 2];
	const char *seed = getenv("WORLD_SEED");
	int cable;

	play.pair_streams = streams[number % 2];
	play_begin(seed ? strtoul(seed, NULL, 10) : 1, test->cabling);
	do
		play_turn();
	while (!play_is_connected());
	turns_until(world.now_ns + world_draw(DRAW_MS) * WORLD_MS);
	cable = (int)world_draw((uint64_t)world.num_cables);
	for (int i = 0; i < test->cables; i++)
		world_cable_set((cable + i) % world.num_cables, how->state);
	play_look();
	turns_until(world.now_ns + WATCH_NS);
	if (play.longest_ns > how->gap_ms * WORLD_MS)
		world_die("cable %d is lost, and a stream stood for %.3f s", cable,
			  (double)play.longest_ns / WORLD_S);
	play_end(1);
	case_end();
}

/* Each case in both ways, with each number of streams. */
static const char *name_of(int i)
{
	static char name[64];

	if (i >= 4 * NUM_CASES)
		return NULL;
	snprintf(name, sizeof(name), "%s%s-%d", cases[i / 4].name, hows[i / 2 % 2].suffix,
		 streams[i % 2]);
	return name;
}

int main(int argc, char **argv)
{
	return cases_main(argc, argv, name_of, pulled_run);
}
