/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world_cases.c - faults at moments that are written down: what the random ones of test_world
 * have found, and what is promised for single faults.
 *
 * Usage: test_world_cases [NAME...]     (default: all of them)
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "play.h"

#define EVENTS_MAX 40

/* From the moment on at which all streams run. */
struct event {
	uint64_t ms;
	enum {
		END,
		CABLE,
		RESET,
		FREEZE
	} what;
	int which; /* cable or rank */
	int how;   /* of a cable: its state; of a process: whether it stops */
};

#define EVENT(ms, what, which, how)                                                                \
	{                                                                                          \
		ms, what, which, how                                                               \
	}
#define DOWN(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_DOWN)
#define HOLE(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_HOLE)
#define UP(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_UP)
#define RESETS(ms, cable) EVENT(ms, RESET, cable, 0)
#define STOPS(ms, rank) EVENT(ms, FREEZE, rank, true)
#define GOES_ON(ms, rank) EVENT(ms, FREEZE, rank, false)
#define ENDS(ms) EVENT(ms, END, 0, 0)
/* Away for a moment: it counts as a loss. */
#define FLAP(ms, cable) DOWN(ms, cable), UP((ms) + 20, cable)

static const struct test_case {
	const char *name;
	const char *cabling;
	uint64_t gap_ms; /* at most so long after all is well */
	struct event events[EVENTS_MAX];
} cases[] = {
	{"cable",
	 "pair",
	 1000,
	 {DOWN(500, 1), UP(2000, 1), DOWN(4000, 0), UP(6000, 0), ENDS(7000)}},
	{"black-hole", "pair", 4000, {HOLE(500, 1), UP(6000, 1), ENDS(7000)}},
	/* As of a wrong MTU: control frames pass, and large messages do not. */
	{"small-packets",
	 "pair",
	 10000,
	 {{500, CABLE, 1, WORLD_CABLE_SMALL}, UP(20000, 1), ENDS(22000)}},
	{"only-way", "line", 1500, {DOWN(500, 1), UP(5000, 1), ENDS(8000)}},
	/*
	 * A cable that was lost often waits ever longer before it is used again, but not any more
	 * when the other one is gone.
	 */
	{"flapping-is-left",
	 "pair",
	 4000,
	 {FLAP(500, 0), FLAP(1500, 0), FLAP(2500, 0), FLAP(4000, 0), FLAP(6500, 0), FLAP(11000, 0),
	  HOLE(15500, 1), RESETS(16000, 0), UP(25000, 1), ENDS(26000)}},
	/* A firewall refuses for a moment, and then nothing answers: nobody's process has ended. */
	{"refused-then-silent",
	 "pair",
	 4000,
	 {DOWN(500, 0), HOLE(600, 1), RESETS(4000, 1), UP(9000, 1), UP(9000, 0), ENDS(12000)}},
	/* Nothing fails because a process does not run, nor because of what it finds then. */
	{"stopped-and-reset",
	 "pair",
	 1000,
	 {DOWN(500, 0), STOPS(1000, 0), RESETS(3000, 1), GOES_ON(3100, 0), STOPS(5000, 1),
	  RESETS(7000, 1), GOES_ON(7100, 1), UP(9000, 0), ENDS(10000)}},
};

static void event_happen(const struct event *event)
{
	switch (event->what) {
	case CABLE:
		world_cable_set(event->which, (enum world_cable_state)event->how);
		break;
	case RESET:
		world_cable_reset(event->which);
		break;
	case FREEZE:
		world_freeze(play.ranks[event->which].node, event->how);
		break;
	case END:
		break;
	}
	play_look();
}

static void case_run(const struct test_case *test)
{
	const struct event *event = test->events;
	uint64_t begin_ns;

	play.gap_ns = test->gap_ms * WORLD_MS;
	play_begin(1, test->cabling);
	begin_ns = world.now_ns;
	do {
		while (world.now_ns < begin_ns + event->ms * WORLD_MS)
			play_turn();
		event_happen(event);
	} while ((event++)->what != END);
	play_end(1);
	_exit(0);
}

/* Each case in a process of its own. Returns whether it passes. */
static bool case_passes(const struct test_case *test)
{
	int status = 1;
	pid_t pid;

	printf("%s: ", test->name);
	fflush(stdout);
	pid = fork();
	if (!pid)
		case_run(test);
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool is_named(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc == 1;
}

int main(int argc, char **argv)
{
	int status = 0;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (is_named(cases[i].name, argc, argv) && !case_passes(&cases[i]))
			status = 1;
	}
	return status;
}
