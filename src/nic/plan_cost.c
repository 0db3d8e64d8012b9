/* SPDX-License-Identifier: Apache-2.0 */
/* plan_cost.c - what a pattern of transfers between nodes costs on the cables of a plan. */
#include "nic/plan_cost.h"

/* Transfers, laid on the cables. */
struct routing {
	const struct mesh_plan_graph *graph;
	uint32_t load[MESH_PLAN_NODES_MAX][MESH_PLAN_NODES_MAX]; /* transfers from one to another */
	int max_hops;
	bool unreachable;
};

/* Finds a shortest route from @from to every node; of several the one over the lowest numbers. */
static void ways_find(const struct mesh_plan_graph *graph, int from,
		      int before[MESH_PLAN_NODES_MAX])
{
	int queue[MESH_PLAN_NODES_MAX], head = 0, tail = 0, node, next;

	for (node = 0; node < graph->num_nodes; node++)
		before[node] = -1;
	before[from] = from;
	queue[tail++] = from;
	while (head < tail) {
		node = queue[head++];
		for (next = 0; next < graph->num_nodes; next++) {
			if (!graph->cables[node][next] || before[next] >= 0)
				continue;
			before[next] = node;
			queue[tail++] = next;
		}
	}
}

static void transfer_add(struct routing *routing, int from, int to)
{
	int before[MESH_PLAN_NODES_MAX], hops = 0, node;

	ways_find(routing->graph, from, before);
	if (before[to] < 0) {
		routing->unreachable = true;
		return;
	}
	for (node = to; node != from; node = before[node], hops++)
		routing->load[before[node]][node]++;
	if (hops > routing->max_hops)
		routing->max_hops = hops;
}

/* The parent of @node in a binary tree over 0 to @num - 1, whose root is 0: NCCL's (trees.cc). */
static int tree_parent(int node, int num)
{
	const int bit = node & -node; /* how high above the leaves the node is */
	const int parent = (node ^ bit) | bit << 1;

	return parent < num ? parent : node ^ bit;
}

/*
 * NCCL's second tree is the mirrored first one, or with an odd number the first one shifted by one:
 * so a leaf of one is an inner node of the other.
 */
static void trees_add(struct routing *routing)
{
	const int num = routing->graph->num_nodes;
	int node, parent, other, other_parent;

	for (node = 1; node < num; node++) {
		parent = tree_parent(node, num);
		other = num % 2 ? (node + 1) % num : num - 1 - node;
		other_parent = num % 2 ? (parent + 1) % num : num - 1 - parent;
		transfer_add(routing, node, parent);
		transfer_add(routing, parent, node);
		transfer_add(routing, other, other_parent);
		transfer_add(routing, other_parent, other);
	}
}

static void pattern_add(struct routing *routing, enum mesh_plan_pattern pattern)
{
	const int num = routing->graph->num_nodes;
	int node, step;

	if (pattern == MESH_PATTERN_TREE) {
		trees_add(routing);
		return;
	}
	for (step = 1; step < num; step *= 2) {
		for (node = 0; node < num; node++)
			transfer_add(routing, node, (node + step) % num);
		if (pattern == MESH_PATTERN_RING)
			break;
	}
}

/* The load of the busiest cable. */
static double busiest(const struct routing *routing)
{
	const struct mesh_plan_graph *graph = routing->graph;
	double most = 0, load;
	int i, j;

	for (i = 0; i < graph->num_nodes; i++) {
		for (j = 0; j < graph->num_nodes; j++) {
			if (!routing->load[i][j])
				continue;
			load = (double)routing->load[i][j] / graph->cables[i][j];
			if (load > most)
				most = load;
		}
	}
	return most;
}

struct mesh_plan_cost mesh_plan_cost(const struct mesh_plan_graph *graph,
				     enum mesh_plan_pattern pattern)
{
	struct mesh_plan_graph full = {.num_nodes = graph->num_nodes};
	struct routing routing = {.graph = graph}, on_full = {.graph = &full};
	struct mesh_plan_cost cost = {.stretch = 1};
	int i, j;

	for (i = 0; i < full.num_nodes; i++)
		for (j = 0; j < full.num_nodes; j++)
			full.cables[i][j] = i != j;
	pattern_add(&routing, pattern);
	pattern_add(&on_full, pattern);
	if (routing.unreachable || !routing.max_hops)
		return cost;
	cost.max_hops = routing.max_hops;
	if (busiest(&routing) > busiest(&on_full))
		cost.stretch = busiest(&routing) / busiest(&on_full);
	return cost;
}
