/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_plan.h - what the tuner goes by: NCCL_MESH_TUNER, and the plan in NCCL_MESH_PLAN. */
#ifndef MESH_SYSTEM_TUNER_PLAN_H
#define MESH_SYSTEM_TUNER_PLAN_H

#include <stdint.h>

#include "base/config.h"
#include "nic/plan.h"

enum mesh_tuner_mode {
	MESH_TUNER_AUTO, /* by the plan; without one NCCL's choice stays */
	MESH_TUNER_RING, /* rings only */
	MESH_TUNER_OFF,
};

struct mesh_tuner_plan {
	enum mesh_tuner_mode mode;
	struct mesh_plan_graph graph; /* of mode auto; without nodes: no plan, or no valid one */
	/*
	 * Equal on all ranks, or a collective hangs because they choose different algorithms: HELLO
	 * carries it. 0: NCCL's choice stays in every case.
	 */
	uint64_t digest;
};

/** Reads the plan. A file that cannot be used is reported at WARN and counts as none. */
void mesh_tuner_plan_load(const struct mesh_config *config, struct mesh_tuner_plan *plan);

#endif
