/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.h - one direction of one connection with its staging buffer: what the workloads move
 * messages over, be it a net plugin's comm or a plain TCP connection.
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "meet.h"
#include "plugin.h"

#define LANE_SLOTS_MAX 64
#define LANE_HANDLE_BYTES 128 /* NCCL's */

/* A message in flight over TCP. */
struct lane_message {
	uint8_t *at;
	size_t left; /* bytes */
};

struct lane {
	bool sending;
	uint8_t *memory;
	size_t slot_bytes, bytes;
	unsigned int slots;
	uint64_t posted, done; /* messages given to the transport, and completed */

	/* net plugin */
	const struct adapter *adapter;
	void *listener, *comm, *registration;
	void *requests[LANE_SLOTS_MAX];

	/* TCP */
	int fd, listen_fd;
	struct lane_message messages[LANE_SLOTS_MAX];
	uint64_t moved; /* messages whose bytes have all gone through the socket */
};

/* What makes lanes: a plugin, or TCP where @address is set. */
struct lane_maker {
	struct plugin plugin;
	struct activity activity;
	const char *address; /* of this rank, for TCP */
};

/**
 * Opens lanes to rank @next and from rank @previous, @count in each direction; either may be -1 for
 * none. All ranks call it together. Returns when all of this rank's are usable.
 *
 * @sends, @receives: @count lanes each, zeroed
 * @slots, @slot_bytes: their staging buffers
 */
void lanes_open(struct lane_maker *maker, struct meet *meet, int next, int previous,
		struct lane *sends, struct lane *receives, unsigned int count, unsigned int slots,
		size_t slot_bytes);

/** Opens both lanes of a comm, zeroed, whose ends @from and @to are in this process. */
void lane_pair_open(struct lane *send, const struct adapter *from, struct lane *receive,
		    const struct adapter *to, unsigned int slots, size_t slot_bytes);

void lane_close(struct lane *lane);

static inline uint8_t *lane_slot(const struct lane *lane, uint64_t index)
{
	return lane->memory + index % lane->slots * lane->slot_bytes;
}

/** Starts message lane->posted out of its slot. Returns false if the transport is not ready. */
bool lane_send(struct lane *lane, size_t size);

/** Posts a receive of a whole slot for message lane->posted. TCP needs to know its @size. */
bool lane_receive(struct lane *lane, size_t size);

/** Asks for message lane->done; true if it is done, @size is its size. */
bool lane_test(struct lane *lane, size_t size);

/* Messages of one size in one direction, checked. */
struct lane_stream {
	size_t size, step;   /* @step: of stamp.h */
	unsigned int window; /* messages in flight on each lane */
};

/** Does one thing for the lane's messages up to number @end. Returns false if nothing could be. */
bool lane_stream_pass(const struct lane_stream *stream, struct lane *lane, uint64_t end);

/** Moves @count messages over each of @num lanes, in turn. */
void lanes_stream(const struct lane_stream *stream, struct lane *lanes, unsigned int num,
		  uint64_t count);

/** Ends the program if message @index in its slot is wrong. */
void lane_check(const struct lane_stream *stream, const struct lane *lane, uint64_t index);

#endif
