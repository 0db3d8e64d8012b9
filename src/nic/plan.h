/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the cables of a whole mesh, as the user has written them down, and what a pattern of
 * transfers between nodes costs on them. Pure.
 */
#ifndef MESH_NIC_PLAN_H
#define MESH_NIC_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/**
 * A number that two plans share if they have the same cables in the same order of nodes; names and
 * ports do not count. Never 0.
 */
uint64_t mesh_plan_graph_digest(const struct mesh_plan_graph *graph);

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
