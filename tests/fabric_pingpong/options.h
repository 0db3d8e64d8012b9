/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line and the launcher's environment. */
#ifndef PINGPONG_OPTIONS_H
#define PINGPONG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_SIZES_MAX 32
#define OPTIONS_PAIRS_MAX 4096
#define OPTIONS_SHARED_MAX 32768
/* The test pattern names a rank with 6 bits and a channel with 7. */
#define OPTIONS_RANKS_MAX 64
#define OPTIONS_CHANNELS_MAX 127
/* NCCL never has more requests outstanding on one comm (NCCL_NET_MAX_REQUESTS). */
#define OPTIONS_INFLIGHT_MAX 32

/* NIC index: the channel's number, as NCCL does where all NICs are near the GPU; the rank's. */
#define OPTIONS_DEV_CHANNEL (-1)
#define OPTIONS_DEV_RANK (-2)

struct pair_name {
	uint16_t from, to;
};

struct options {
	int rank, world;
	const char *master_addr;
	char master_port[8]; /* digits */
	const char *plugin;  /* NULL: the default search */
	int abi;	     /* 0: the newest one */
	bool json;
	int verbose;
	uint32_t rendezvous_s;
	struct pair_name pairs[OPTIONS_PAIRS_MAX];
	size_t num_pairs; /* 0: all */

	/* From here on rank 0's command line counts on all ranks. */
	uint64_t sizes[OPTIONS_SIZES_MAX]; /* bytes */
	size_t num_sizes;
	uint32_t inflight;
	uint32_t channels;
	int dev;	 /* modulo the number of devices, or one of the two above */
	double seconds;	 /* for each measurement of one size */
	uint32_t iters;	 /* 0: as many as fit into `seconds` */
	uint32_t repeat; /* streams for each size, of which the median counts */
	bool check_only, no_check;
	bool check, measure;  /* what these two leave */
	uint64_t check_max;   /* largest message of the correctness matrix, bytes */
	uint32_t check_every; /* each pair checks one in so many sizes */
	bool all_at_once;
	uint32_t timeout_s; /* without progress */

	char shared[OPTIONS_SHARED_MAX]; /* the command line, each argument with a newline */
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_DONE,  /* help was printed: exit 0 */
	OPTIONS_WRONG, /* said why on stderr: exit 2 */
};

/** Reads @argv and the environment; complains on stderr. */
enum options_result options_parse(int argc, char **argv, struct options *options);

/**
 * Takes from rank 0's command line, which is in its `shared`, what counts on all ranks. Cuts @text.
 *
 * Returns 0, or -EINVAL if the text is not understood (another version of this program).
 */
int options_apply_shared(struct options *options, char *text);

/** Largest of the sizes, in bytes. */
uint64_t options_max_size(const struct options *options);

#endif
