/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - one thing that the two ranks of a pair do together: so many messages of a size, in a
 * certain manner. The leader (the rank that the pair's data comes from) decides, both do it.
 */
#ifndef PINGPONG_PHASE_H
#define PINGPONG_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

enum phase_kind {
	PHASE_CHECK,	/* all comms, both directions */
	PHASE_PINGPONG, /* channel 0, one message at a time */
	PHASE_STREAM,	/* all comms of the pair's direction; one reply at the end */
	PHASE_KINDS
};

/* NCCL's protocols, each with its own part of a comm's buffer. */
enum phase_protocol {
	PHASE_LL,     /* small; the receiver may learn of it before the bytes are there */
	PHASE_LL128,  /* the same */
	PHASE_SIMPLE, /* the completion and the reported size count */
	PHASE_PROTOCOLS
};

/* Who comes first, the receive or the send. */
enum phase_order {
	PHASE_FREE,
	PHASE_EARLY, /* receives are posted on both ranks before the first send */
	PHASE_LATE,  /* sends were tried on both ranks before the first receive */
	PHASE_ORDERS
};

struct phase {
	uint64_t number; /* 1, 2, ... in the pair */
	enum phase_kind kind;
	enum phase_protocol protocol;
	enum phase_order order;
	bool full;	 /* every byte is checked; else samples */
	bool exact;	 /* receives are as large as the message; else as large as the slot */
	bool mixed;	 /* sizes from 0 to `size`, changing with each message */
	uint32_t window; /* messages outstanding on a comm */
	uint32_t offset; /* of the message in its slot, bytes */
	uint64_t size;	 /* bytes */
	uint64_t count;	 /* messages on each comm */
};

/* What one comm does in a phase. */
struct plan {
	uint64_t count;
	uint64_t size;
	uint32_t window;
	uint32_t offset;
	enum phase_protocol protocol;
	bool full, exact, mixed;
};

/* Bytes of a phase on the wire. */
#define PHASE_WIRE 88

void phase_encode(const struct phase *phase, uint8_t *wire);

/** Returns 0, or -EPROTO if the bytes make no sense. */
int phase_decode(const uint8_t *wire, size_t size, struct phase *phase);

/** What the comm of @channel does; @reply: it carries answers, against the pair's direction. */
struct plan phase_plan(const struct phase *phase, uint32_t channel, bool reply);

/** Size of message @index of a comm with this plan. */
uint64_t plan_message_size(const struct plan *plan, uint64_t index);

/** The protocol that NCCL would take for a message of this size. */
enum phase_protocol phase_protocol_for(uint64_t size);

/** Bytes of the part of a comm's buffer that this protocol uses. */
size_t phase_region_bytes(enum phase_protocol protocol, const struct options *options);

/** Bytes of one slot, for so many of them in a region. */
size_t phase_slot_bytes(size_t region_bytes, uint32_t window);

/** Makes the window small enough for the region, if it is not. */
void phase_fit(struct phase *phase, const struct options *options);

/** The phase in words. */
void phase_describe(const struct phase *phase, char *text, size_t size);

/** Number of phases in the pair's part of the correctness matrix. */
size_t check_num_phases(const struct options *options, uint32_t pair);

/** Phase @index of the pair's part of the correctness matrix, without its number. */
struct phase check_phase(const struct options *options, uint32_t pair, size_t index);

#endif
