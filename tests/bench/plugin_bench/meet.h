/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - where the ranks of one run meet, beside the links that are measured: a Unix socket,
 * which network namespaces of one machine share. A failure here ends the program.
 */
#ifndef BENCH_MEET_H
#define BENCH_MEET_H

#include <stddef.h>

#define MEET_RANKS_MAX 8

struct meet {
	int rank, ranks;
	int sockets[MEET_RANKS_MAX]; /* rank 0: to each other rank; others: [0], to rank 0 */
};

/** Prints the reason in one line and ends the program with status 1. */
void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Waits until all @ranks are there. Rank 0 makes the socket @path. */
void meet_open(struct meet *meet, const char *path, int rank, int ranks);

/** Gives each rank the @size bytes of all: @all has room for ranks times @size. */
void meet_gather(struct meet *meet, const void *mine, size_t size, void *all);

/** Returns when every rank has called it. */
void meet_barrier(struct meet *meet);

void meet_close(struct meet *meet);

#endif
