/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - the cables of a whole mesh, as the user has written them down, and what a pattern of
 * transfers between nodes costs on them. Pure.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "nic/plan.h"

static const char blanks[] = " \t\r";

/* The number of the node whose name is @len bytes at @name, a new one if need be, or an error. */
static int node_number(struct mesh_plan_graph *graph, const char *name, size_t len)
{
	int i;

	if (!len || len >= MESH_PLAN_NODE_NAME_MAX)
		return -EINVAL;
	for (i = 0; i < graph->num_nodes; i++)
		if (strlen(graph->names[i]) == len && !memcmp(graph->names[i], name, len))
			return i;
	if (i == MESH_PLAN_NODES_MAX)
		return -E2BIG;
	memcpy(graph->names[i], name, len);
	graph->num_nodes++;
	return i;
}

/* One line, which ends at @end. */
static int line_parse(struct mesh_plan_graph *graph, const char *at, const char *end)
{
	int nodes[2], num = 0;
	size_t len;

	for (;;) {
		at += strspn(at, blanks);
		if (at >= end)
			break;
		len = strcspn(at, " \t\r\n#");
		if (num == 2)
			return -EINVAL;
		/* A port behind the colon does not matter here. */
		nodes[num] = node_number(graph, at, strcspn(at, ": \t\r\n#"));
		if (nodes[num] < 0)
			return nodes[num];
		num++;
		at += len;
	}
	if (num < 2)
		return 0;
	if (nodes[0] == nodes[1] || graph->cables[nodes[0]][nodes[1]] == UINT8_MAX)
		return -EINVAL;
	graph->cables[nodes[0]][nodes[1]]++;
	graph->cables[nodes[1]][nodes[0]]++;
	return 0;
}

int mesh_plan_graph_parse(const char *text, struct mesh_plan_graph *graph, int *line)
{
	const char *newline;
	int ret = 0;

	memset(graph, 0, sizeof(*graph));
	for (*line = 1; *text && !ret; ++*line, text = newline + (*newline == '\n')) {
		newline = text + strcspn(text, "\n");
		ret = line_parse(graph, text, text + strcspn(text, "\n#"));
	}
	--*line;
	if (ret)
		memset(graph, 0, sizeof(*graph));
	return ret;
}

bool mesh_plan_graph_is_full(const struct mesh_plan_graph *graph)
{
	int i, j;

	for (i = 0; i < graph->num_nodes; i++)
		for (j = 0; j < i; j++)
			if (!graph->cables[i][j])
				return false;
	return true;
}

uint64_t mesh_plan_graph_digest(const struct mesh_plan_graph *graph)
{
	uint64_t digest = MESH_HASH_START ^ (uint64_t)graph->num_nodes;
	int i, j;

	for (i = 0; i < graph->num_nodes; i++)
		for (j = 0; j < i; j++)
			digest = mesh_hash_add(digest, &graph->cables[i][j], 1);
	return digest ? digest : 1;
}

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
