/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - framed messages between the ranks, over a non-blocking TCP stream, and queues of
 * them between the threads of one rank.
 */
#ifndef PINGPONG_FRAME_H
#define PINGPONG_FRAME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not a rank: the coordinator on rank 0. */
#define FRAME_COORDINATOR 0xffff
/* A larger body is not ours. */
#define FRAME_BODY_MAX (4u << 20)

/* Of the messages; raised when any of them changes. */
#define FRAME_VERSION 2

enum frame_type {
	FRAME_HELLO = 1, /* rank to coordinator: u32 version, u32 ranks, host name */
	FRAME_WELCOME,	 /* all ranks are there: "host=name\n" for each, then rank 0's options */
	FRAME_LOADED,	 /* rank to coordinator: the plugin is ready; its name in words */
	FRAME_START,	 /* to ranks: u32 pair, u16 from, u16 to of each pair that starts now */
	FRAME_RESULT,	 /* rank to coordinator: this side of the pair is over; JSON */
	FRAME_FINISH,	 /* to ranks: no more pairs, unload the plugin */
	FRAME_BYE,	 /* rank to coordinator: unloaded; text if that failed */
	FRAME_EXIT,	 /* to ranks: one byte, 1: all was right */
	FRAME_FAIL,	 /* rank to coordinator: it cannot go on; why */
	FRAME_ABORT,	 /* to ranks: end now; why */
	FRAME_PING,	 /* coordinator to rank, and back */
	/* From here on between the two ranks of a pair. */
	FRAME_HANDLES,	 /* 128 bytes for each channel */
	FRAME_PHASE,	 /* leader: the next thing to do (phase.h) */
	FRAME_READY,	 /* u64 phase number: receives are posted, or sends were tried */
	FRAME_DONE,	 /* u64 phase number: this side is through */
	FRAME_END,	 /* leader: nothing more to do, tear down */
	FRAME_PAIR_FAIL, /* this side gave up; why */
	FRAME_TYPES
};

struct frame {
	struct frame *next;
	uint16_t type, from, to;
	uint32_t pair;	/* index of the pair, where it belongs to one */
	uint32_t size;	/* of the body, bytes */
	uint8_t body[]; /* a NUL follows that is not counted, so text may be used in place; words
			   from another rank are printable ASCII */
};

/** Returns a new frame with a copy of the body (NULL: zeroes), to be released with free(). */
struct frame *frame_new(enum frame_type type, uint16_t from, uint16_t to, uint32_t pair,
			const void *body, size_t size);

/** As frame_new() with text as the body. */
struct frame *frame_new_text(enum frame_type type, uint16_t from, uint16_t to, uint32_t pair,
			     const char *text);

/** Big-endian numbers in bodies, any alignment. */
void frame_put_u64(uint8_t *at, uint64_t value);
uint64_t frame_get_u64(const uint8_t *at);
void frame_put_u32(uint8_t *at, uint32_t value);
uint32_t frame_get_u32(const uint8_t *at);

/* One connection; used by one thread. */
struct link {
	int fd; /* -1: closed */
	uint8_t *in;
	size_t in_size, in_capacity;
	uint8_t *out;
	size_t out_size, out_sent, out_capacity;
	uint64_t heard_ns; /* when bytes last came in */
};

/** Takes over @fd and makes it non-blocking. */
void link_open(struct link *link, int fd);

void link_close(struct link *link);

/** Puts the frame into the send buffer; the frame stays the caller's. */
void link_send(struct link *link, const struct frame *frame);

/** Writes what the socket takes. Returns 0 or a negative errno. */
int link_flush(struct link *link);

/** True while something waits to be written. */
bool link_pending(const struct link *link);

/** Reads what is there. Returns 0, -ECONNRESET at the end of the stream, or another errno. */
int link_fill(struct link *link);

/**
 * Takes the next whole frame from what was read; *frame is NULL if there is none yet.
 * Returns 0, or -EPROTO if the bytes are not ours.
 */
int link_next(struct link *link, struct frame **frame);

/* A queue of frames between threads. */
struct mailbox {
	pthread_mutex_t lock; /* covers first and last */
	pthread_cond_t filled;
	struct frame *first, **last;
	atomic_uint count;
	int event; /* eventfd that is written for each frame; -1: none */
};

/** @with_event: also make an eventfd to poll. Returns 0 or a negative errno. */
int mailbox_init(struct mailbox *box, bool with_event);

/** Frees what is left in it. */
void mailbox_destroy(struct mailbox *box);

/** Hands over @frame. */
void mailbox_put(struct mailbox *box, struct frame *frame);

/** Returns the oldest frame, now the caller's, or NULL at once if there is none. */
struct frame *mailbox_take(struct mailbox *box);

/** Waits up to @timeout_ms until there is a frame. */
void mailbox_sleep(struct mailbox *box, int timeout_ms);

/** As mailbox_take(), but waits up to @timeout_ms for one. */
struct frame *mailbox_wait(struct mailbox *box, int timeout_ms);

#endif
