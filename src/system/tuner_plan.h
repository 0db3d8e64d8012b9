/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuner_plan.h - what the tuner goes by: NCCL_MESH_TUNER, and the plan in NCCL_MESH_PLAN, the
 * cables of a whole mesh, as the user has written them down.
 */
#ifndef MESH_SYSTEM_TUNER_PLAN_H
#define MESH_SYSTEM_TUNER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

/* Larger meshes get no plan: NCCL's own choice stays. */
#define MESH_PLAN_NODES_MAX 64
/* HOST_NAME_MAX of Linux, and the final zero. */
#define MESH_PLAN_NODE_NAME_MAX 65

/* Nodes are numbered in the order in which the text names them first: the order of the ranks. */
struct mesh_plan_graph {
	int num_nodes; /* 0: no plan */
	char names[MESH_PLAN_NODES_MAX][MESH_PLAN_NODE_NAME_MAX];
	/* Parallel cables between two nodes, the same in both directions; 255 at most. */
	uint8_t cables[MESH_PLAN_NODES_MAX][MESH_PLAN_NODES_MAX];
};

/**
 * Reads the lines of a cable list, "NODE[:PORT] NODE[:PORT]", as `fi_mesh plan cables:FILE` does. A
 * line with one word names a node, to give it its place in the order. '#' starts a comment.
 *
 * @line: receives the number of the line that cannot be used
 *
 * Returns 0; -EINVAL; -E2BIG for more than MESH_PLAN_NODES_MAX nodes. @graph is empty then.
 */
int mesh_plan_graph_parse(const char *text, struct mesh_plan_graph *graph, int *line);

/** True if each two nodes have a cable. */
bool mesh_plan_graph_is_full(const struct mesh_plan_graph *graph);

/** True if each node has a cable to the next one, and the last one to the first. */
bool mesh_plan_graph_has_ring(const struct mesh_plan_graph *graph);

/**
 * A number that two plans share if they have the same cables in the same order of nodes; names and
 * ports do not count. Never 0.
 */
uint64_t mesh_plan_graph_digest(const struct mesh_plan_graph *graph);

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
