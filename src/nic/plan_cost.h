/* SPDX-License-Identifier: Apache-2.0 */
/* plan_cost.h - what a pattern of transfers between nodes costs on the cables of a plan. Pure. */
#ifndef MESH_NIC_PLAN_COST_H
#define MESH_NIC_PLAN_COST_H

#include "nic/plan_graph.h"

/* The patterns of NCCL's algorithms between nodes. */
enum mesh_plan_pattern {
	MESH_PATTERN_RING, /* each node to the next one */
	MESH_PATTERN_TREE, /* two binary trees, each edge in both directions */
	MESH_PATTERN_PAT,  /* each node to those 1, 2, 4, ... further */
	MESH_PATTERNS,
};

struct mesh_plan_cost {
	int max_hops; /* cables on the longest route between two nodes of the pattern; 0: none */
	/*
	 * How many times longer than on a full mesh the busiest cable is in use: each transfer
	 * takes one shortest route, and parallel cables share. At least 1.
	 */
	double stretch;
};

/**
 * Computes the cost of @pattern. The same plan gives the same cost on every machine.
 *
 * @graph: at least 2 nodes
 */
struct mesh_plan_cost mesh_plan_cost(const struct mesh_plan_graph *graph,
				     enum mesh_plan_pattern pattern);

#endif
