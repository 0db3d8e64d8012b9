/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - faults at moments that are written down, and the programs that have tables of them. */
#ifndef TESTS_WORLD_CASES_H
#define TESTS_WORLD_CASES_H

#include "play.h"

#define EVENTS_MAX 40

/* Milliseconds from a moment on that the table names. */
struct event {
	uint64_t ms;
	enum {
		END,
		CABLE,
		RESET,
		RATE,
		DELAY,
		PLUG,
		ADDRESS,
		CLOSED_PORT,
		FREEZE,
		DESCRIPTORS,
		KILL,
		START,
		DRAIN,
		UNDRAIN,
		CARRIED,
		REST,
		ABORT,
	} what;
	int which; /* cable or rank */
	int how;   /* see below */
};

#define EVENT(ms, what, which, how)                                                                \
	{                                                                                          \
		ms, what, which, how                                                               \
	}
#define DOWN(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_DOWN)
#define HOLE(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_HOLE)
#define SMALL(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_SMALL)
#define UP(ms, cable) EVENT(ms, CABLE, cable, WORLD_CABLE_UP)
#define RESETS(ms, cable) EVENT(ms, RESET, cable, 0)
#define MBPS(ms, cable, rate) EVENT(ms, RATE, cable, rate)
#define TAKES_MS(ms, cable, one_way) EVENT(ms, DELAY, cable, one_way)
/* A further cable. */
#define PLUGGED(ms, a, b) EVENT(ms, PLUG, a, b)
/* The address of a rank's NIC at a cable. */
#define LOSES_ADDRESS(ms, rank, cable) EVENT(ms, ADDRESS, rank, -1 - (cable))
#define HAS_ADDRESS(ms, rank, cable) EVENT(ms, ADDRESS, rank, cable)
/* 0: its firewall lets all pass. */
#define CLOSES_PORT(ms, rank, port) EVENT(ms, CLOSED_PORT, rank, port)
#define STOPS(ms, rank) EVENT(ms, FREEZE, rank, true)
#define GOES_ON(ms, rank) EVENT(ms, FREEZE, rank, false)
#define NO_FILES(ms, rank) EVENT(ms, DESCRIPTORS, rank, true)
#define HAS_FILES(ms, rank) EVENT(ms, DESCRIPTORS, rank, false)
#define IS_KILLED(ms, rank) EVENT(ms, KILL, rank, 0)
#define STARTS(ms, rank) EVENT(ms, START, rank, 0)
#define DRAINED(ms, rank, cable) EVENT(ms, DRAIN, rank, cable)
#define UNDRAINED(ms, rank, cable) EVENT(ms, UNDRAIN, rank, cable)
/* Since the event before this one the cable has carried data, or control messages only. */
#define IS_USED(ms, cable) EVENT(ms, CARRIED, cable, true)
#define IS_QUIET(ms, cable) EVENT(ms, CARRIED, cable, false)
/* Since the event before this one it has carried so many Mbit/s, both ways together, or more. */
#define CARRIES(ms, cable, mbps) EVENT(ms, CARRIED, cable, mbps)
/* NCCL has nothing to do; or again. */
#define RESTS(ms) EVENT(ms, REST, 0, true)
#define WORKS(ms) EVENT(ms, REST, 0, false)
/* A rank closes its end of a stream alone; the number counts from 0. */
#define ABORTS(ms, rank, stream) EVENT(ms, ABORT, rank, stream)
#define ENDS(ms) EVENT(ms, END, 0, 0)
/* Away for a moment: it counts as a loss. */
#define FLAP(ms, cable) DOWN(ms, cable), UP((ms) + 20, cable)

/* Streams that run; the events count from the moment at which all of them do. */
struct test_case {
	const char *name;
	const char *cabling;
	uint64_t gap_ms; /* at most so long after all is well */
	struct event events[EVENTS_MAX];
	const char *settings;
	/* Basic regular expressions: a line of a log, as "a: " and what a says, and of none. */
	const char *says, *says_not;
	int message_kib;     /* of the largest message; 0: 256 */
	unsigned int absent; /* a bit mask of cables that have no carrier at first */
	/* Both ends of all streams fail, and the process of each has said `says`; 0: none fails. */
	uint64_t fails_from_ms, fails_until_ms;
	int lines; /* how often it has said so; 0: any number */
};

#define FAILS(from, until) .fails_from_ms = (from), .fails_until_ms = (until)

void event_happen(const struct event *event);

/** Runs test cases as @run does, or those that the command line names. Returns the status. */
int cases_main(int argc, char **argv, const char *(*name)(int i), void (*run)(int i));

/** Ends the process of a case that passes, if a log has said what was expected. */
void case_end(void) __attribute__((noreturn));

/** Runs a case with streams, and ends the process. */
void case_run(const struct test_case *test);

/** The main function of a program with a table of these, `cases`. */
#define CASES_MAIN                                                                                 \
	static const char *name_of(int i)                                                          \
	{                                                                                          \
		return i < (int)(sizeof(cases) / sizeof(cases[0])) ? cases[i].name : NULL;         \
	}                                                                                          \
                                                                                                   \
	static void number_run(int i)                                                              \
	{                                                                                          \
		case_run(&cases[i]);                                                               \
	}                                                                                          \
                                                                                                   \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return cases_main(argc, argv, name_of, number_run);                                \
	}

#endif
