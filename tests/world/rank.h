/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - plays NCCL: processes that load the plugin, and streams of messages between them. */
#ifndef TESTS_WORLD_RANK_H
#define TESTS_WORLD_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include <nccl/net_abi.h>

#include "statistics.h"
#include "world.h"

#define SLOTS 8				  /* messages of a stream at a time */
#define MESSAGE_BYTES ((size_t)256 << 10) /* the largest message, if nothing else is set */

struct rank {
	struct world_node *node;
	void *library;
	const struct nccl_net_newest *net;
	void *context;
	int num_nics;
	struct statistics statistics;
};

enum stream_state {
	STREAM_CONNECTS,
	STREAM_RUNS,
	STREAM_STOPS, /* no further messages; those that were begun come to their end */
	STREAM_STOPPED,
	STREAM_FAILED,
	STREAM_CLOSED, /* both ends */
};

/* A message that one end has posted. */
struct slot {
	void *request;
	uint64_t number;
	uint8_t *bytes;
};

struct stream_end {
	struct rank *rank;
	void *comm, *registration;
	uint8_t *memory;
	struct slot slots[SLOTS];
	uint64_t posted, done; /* messages */
	bool silent;	       /* its NCCL does not call connect or accept */
	bool gone;	       /* its process has been killed, or has closed it alone */
	uint64_t failed_ns;    /* when it has failed; 0: it has not */
};

/* A comm: messages of drawn sizes, each byte of which is checked. */
struct stream {
	int number;
	enum stream_state state;
	struct stream_end send, receive;
	void *listener;
	uint8_t handle[NCCL_HANDLE_SIZE];
	uint64_t sizes_seed;
	size_t message_bytes;	/* the largest */
	uint64_t stops_at;	/* number of the first message that is not sent */
	uint64_t progressed_ns; /* when a message was last posted or completed */
	uint64_t bytes;
	uint64_t doomed_ns; /* since one end is gone, of which the other one is to learn; or 0 */
};

/** The largest message of the streams that are opened from now on. */
extern size_t rank_message_bytes;

/** What a line of a plugin's log is to match; NULL: nothing, or there has been one. */
extern const char *rank_expects;

/** What no line may match; NULL: nothing. */
extern const char *rank_excludes;

/** Streams fail, each end by itself: the other one is used until it has failed, too. */
extern bool rank_fails;

/** Loads the plugin for a node's process, and calls init. */
void rank_start(struct rank *rank, struct world_node *node, const char *plugin);

/** Calls init, also once more after rank_end(). */
void rank_begin(struct rank *rank);

/**
 * Calls finalize, and fails if it leaves something, or if the plugin has miscounted. All of its
 * streams are closed. @quiet: no fault has been in this world
 */
void rank_end(struct rank *rank, bool quiet);

/** A stream between two ranks, which begins with its connect. */
void stream_open(struct stream *stream, int number, struct rank *from, struct rank *to, int dev);

/** One turn of both of NCCL's threads. Returns whether anything was done. */
bool stream_turn(struct stream *stream);

/** Has it end after the messages that were begun. */
void stream_stop(struct stream *stream);

/** Ends the posting of messages, or lets it go on. */
void stream_rest(struct stream *stream, bool rest);

/** One end closes without a word to the other one's program, as on an abort. */
void stream_abort(struct stream *stream, struct stream_end *end);

/** The process of this rank has been killed, and with it the ends of these streams there. */
void streams_lose(struct stream *streams, int num, const struct rank *rank);

/** Closes the listener, if it is open: nothing is accepted any more. */
void stream_listener_close(struct stream *stream);

/** Closes both ends. */
void stream_close(struct stream *stream);

#endif
