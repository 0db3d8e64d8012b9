/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - how the ranks of a test find each other and agree: a TCP connection of each rank to
 * rank 0 at MASTER_ADDR:MASTER_PORT, which torchrun and our run.sh set.
 */
#ifndef COLLECTIVES_RANKS_H
#define COLLECTIVES_RANKS_H

#include <stddef.h>

#define RANKS_MAX 64

struct ranks {
	int rank, world;
	int fd[RANKS_MAX]; /* rank 0: to every other rank; others: [0], to rank 0. -1: none */
};

/**
 * Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT and connects, within @timeout_s seconds.
 * Says on stderr what is missing. Returns 0 or a negative errno.
 */
int ranks_meet(struct ranks *ranks, unsigned int timeout_s);

/** Gives rank 0's @size bytes to all. Returns 0, or -ECONNRESET if a rank is gone. */
int ranks_broadcast(struct ranks *ranks, void *data, size_t size);

/** Replaces *value by the largest of all ranks': also a barrier. The same errors. */
int ranks_largest(struct ranks *ranks, double *value);

void ranks_part(struct ranks *ranks);

#endif
