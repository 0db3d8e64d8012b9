/* SPDX-License-Identifier: Apache-2.0 */
/* play.h - builds nodes, cables and streams, and checks that no stream fails or stalls. */
#ifndef TESTS_WORLD_PLAY_H
#define TESTS_WORLD_PLAY_H

#include "rank.h"

#define PLAY_RANKS_MAX 5
#define PLAY_CABLES_MAX 6
#define PLAY_PAIRS_MAX 4
#define PLAY_STREAMS_MAX 4

/* Two ranks with streams. */
struct pair {
	int a, b;
	uint64_t well_since_ns;	 /* since when packets can pass between them; 0: they cannot */
	uint64_t ill_since_ns;	 /* since when they cannot; 0: they can */
	uint64_t cable_since_ns; /* since when a good cable joins them; 0: none does */
};

struct play {
	struct rank ranks[PLAY_RANKS_MAX];
	int num_ranks;
	struct pair pairs[PLAY_PAIRS_MAX];
	int num_pairs;
	int pair_streams; /* of each pair: 1, or half of them each way */
	uint64_t gap_ns;  /* a stream fails the test if it stalls longer while its pair is well */
	uint64_t longest_ns; /* the longest such stall so far */
	char plugin[4096];
	int num_streams; /* begun so far */
	uint64_t messages, bytes;
	bool ends;  /* no further streams begin */
	bool quiet; /* no fault: nothing may be lost, and no WARN be said */
	/* Set before play_begin(). "NAME=VALUE b:NAME=VALUE": of all, and of b alone; or NULL. */
	const char *settings;
	uint64_t fails_from_ns, fails_until_ns; /* if rank_fails: when streams fail, at both ends */
	const char *folder;  /* real, for what `fi_mesh drain` marks; NULL: nothing is drained */
	unsigned int absent; /* a bit mask of cables that have no carrier at first */
};

extern struct play play;

/** Begins a world of a cabling that play.c names. */
void play_begin(uint64_t seed, const char *cabling);

/**
 * One turn of everything; fails if a stream has failed or stands. Streams that have ended make
 * place for others. Returns false if there is none any more.
 */
bool play_turn(void);

/** True if no stream is about to connect: that may fail without descriptors. */
bool play_is_connected(void);

/** One of the streams. */
struct stream *play_stream_draw(void);

/** Kills a process, of which its streams' other ends are to learn; and starts another one. */
void play_kill(int rank);
void play_restart(int rank);

/** Marks the NIC of this rank at a cable as `fi_mesh drain` does, or takes the mark away. */
void play_drain(int rank, int cable, bool drained);

/** NCCL has nothing to do (@rest), or again. */
void play_rest(bool rest);

/** The rank closes its end of a stream alone. */
void play_abort(int rank, int stream);

/** Fails unless all streams have, and the processes of both ends have said @says, @lines times. */
void play_check_failed(const char *says, int lines);

/** Lets all streams come to their end, and prints what has been. */
void play_end(uint64_t seed);

/** Looks which pairs are well: after each change of a cable or of a process. */
void play_look(void);

bool play_is_well(void);

#endif
