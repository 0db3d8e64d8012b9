/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leader.h - which phases a pair goes through, and what their times say. Pure bookkeeping on the
 * rank that leads the pair.
 */
#ifndef PINGPONG_LEADER_H
#define PINGPONG_LEADER_H

#include <jansson.h>

#include "options.h"
#include "phase.h"

enum leader_stage {
	LEADER_CHECK,	  /* index: phase of the matrix */
	LEADER_PING_WARM, /* index of these and the following: size */
	LEADER_PING,
	LEADER_STREAM_WARM,
	LEADER_STREAM,
	LEADER_END,
};

struct leader_figures {
	double half_rtt_us, gbit_s;
};

struct leader {
	const struct options *options;
	uint32_t pair; /* its number, which says what of the matrix it checks */
	enum leader_stage stage;
	size_t index;
	uint64_t number;  /* of the last phase */
	uint64_t count;	  /* messages of the next measured phase on each comm */
	uint32_t repeats; /* streams of this size that counted so far */
	double *rates;	  /* of those, Gbit/s */
	uint64_t *stamps; /* when each answer of a ping-pong came */
	size_t stamps_max;
	struct leader_figures figures[OPTIONS_SIZES_MAX];
	size_t num_figures;
};

/** Returns 0 or -ENOMEM. */
int leader_open(struct leader *leader, const struct options *options, uint32_t pair);

void leader_close(struct leader *leader);

/** Decides the next phase. Returns false when there is none. */
bool leader_next(struct leader *leader, struct phase *phase);

/** Takes the times of the phase that leader_next() gave and that is through. */
void leader_note(struct leader *leader, const struct phase *phase, uint64_t start_ns,
		 uint64_t end_ns);

/** A new JSON array of what was measured so far. */
json_t *leader_json(const struct leader *leader);

#endif
