/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuner.h - keeps NCCL from algorithms that a mesh without all cables cannot do well.
 *
 * All ranks must choose alike, or a collective hangs, and a tuner has no channel to agree. It uses
 * what every rank is given: the numbers of ranks and nodes, and a setting and a plan of which HELLO
 * carries a digest. No function here fails: NCCL would end the collective.
 */
#ifndef MESH_NCCL_TUNER_H
#define MESH_NCCL_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl/tuner_abi.h>

#include "system/tuner_plan.h"

/* What is done to a cost table. Constant for a communicator. */
struct mesh_tuner {
	bool active;			/* false: NCCL's choice stays */
	bool ring_only;			/* also rows that this version does not know are excluded */
	uint32_t excluded;		/* bit n: enum nccl_algorithm n */
	float factors[NCCL_ALGORITHMS]; /* of the other rows */
};

/** Decides for a communicator of so many nodes. @why: receives the decision in words. */
void mesh_tuner_decide(const struct mesh_tuner_plan *plan, size_t num_nodes,
		       struct mesh_tuner *tuner, char *why, size_t why_size);

/**
 * Changes a cost table of @num_algorithms rows and @num_protocols columns. If nothing that can be
 * used would be left, it stays as it is.
 */
void mesh_tuner_apply(const struct mesh_tuner *tuner, float *table, int num_algorithms,
		      int num_protocols);

#endif
