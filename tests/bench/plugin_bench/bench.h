/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - one rank of one run, and the workloads that it can run. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "lane.h"

#define BENCH_LIST_MAX 16

struct bench {
	/* options */
	int rank, ranks;
	const char *meet_path, *file, *workload;
	int abi;
	uint64_t sizes[BENCH_LIST_MAX];
	size_t num_sizes;
	unsigned int inflight[BENCH_LIST_MAX];
	unsigned int num_inflight;
	unsigned int comms[BENCH_LIST_MAX];
	unsigned int num_comms;
	double seconds; /* of each figure */
	unsigned int pause_us;

	struct meet meet;
	struct lane_maker maker;
	double load_seconds; /* dlopen, init and getProperties */
};

/* What a measured part took; CPU seconds are the sum of all ranks. */
struct usage {
	double wall, user, system;
};

/** Takes the time; all ranks start together. */
void usage_begin(struct bench *bench, struct usage *usage);

/** Takes the time once all ranks have ended. */
void usage_end(struct bench *bench, struct usage *usage);

/**
 * Runs @part over and over with more messages, until one run fills half of bench->seconds; what
 * was before warms up. All ranks call it.
 *
 * @least: a run has at least so many
 *
 * Returns the number of messages of the last run.
 */
uint64_t bench_calibrate(struct bench *bench, struct usage *usage, uint64_t least,
			 void (*part)(void *argument, uint64_t count), void *argument);

/**
 * Called where nothing could be done.
 *
 * @idle: how many times in a row; @yield: gives the CPU away once in so many
 */
void bench_idle(uint64_t idle, unsigned int yield);

/** From now on bench_idle() sleeps for @us microseconds; 0: it polls. */
void bench_pause_set(unsigned int us);

/* Where each rank has a CPU of its own. */
#define YIELD_SELDOM 256
/* As NCCL's progress thread: after each pass that did nothing. */
#define YIELD_ALWAYS 1

/* Each prints one JSON object a line, on rank 0. */
void bench_stream(struct bench *bench);
void bench_pingpong(struct bench *bench);
void bench_ring(struct bench *bench);
void bench_setup(struct bench *bench);
void bench_share(struct bench *bench);

#endif
