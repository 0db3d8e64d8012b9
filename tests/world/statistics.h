/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.h - compares what the plugin counts for `fi_mesh watch` with what the world has seen.
 *
 * The page is a real file. The world removes it as soon as it has mapped it, so that nothing is
 * left of a run however it ends; what finalize writes is seen in the mapping.
 */
#ifndef TESTS_WORLD_STATISTICS_H
#define TESTS_WORLD_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh_stats_page;

/* Messages of one direction, and their bytes. */
struct statistics_messages {
	uint64_t posted, posted_bytes;
	uint64_t done, done_bytes;
};

/* Of one use of the plugin by a process. */
struct statistics {
	char folder[32]; /* NCCL_MESH_STATS_DIR of the process */
	bool is_own_folder;
	const struct mesh_stats_page *page;
	struct statistics_messages sent, received;
	uint64_t comms;	 /* that NCCL has got */
	uint64_t failed; /* of these: NCCL has got an error */
	uint64_t doomed; /* ends of which the other one is gone */
};

/* What relays have carried, in all processes that have ended. */
extern uint64_t statistics_relayed_bytes;

/**
 * Names a folder for the page of a new process of this node, which is in the environment until the
 * next one. @parent: where the folder is to be; NULL: in one of its own
 */
void statistics_folder_make(struct statistics *statistics, const char *parent, char node);

/** Begins to count, and maps the page if it is there already. */
void statistics_begin(struct statistics *statistics);

/** Maps the page before finalize, if that has not been done. */
void statistics_open(struct statistics *statistics);

/** Fails if the page does not agree, after finalize. @quiet: nothing was lost in this world. */
void statistics_check(struct statistics *statistics, const char *node, bool quiet);

/** A message of this size is posted, or done. */
static inline void statistics_post(struct statistics_messages *messages, size_t size)
{
	messages->posted++;
	messages->posted_bytes += size;
}

static inline void statistics_done(struct statistics_messages *messages, size_t size)
{
	messages->done++;
	messages->done_bytes += size;
}

#endif
