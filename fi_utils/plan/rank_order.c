/* SPDX-License-Identifier: Apache-2.0 */
/* rank_order.c - finds an order of ranks in which each is cabled to the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rank_order.h"
#include "plan/topology.h"

/* Steps of one search: one node tried, some tens of nanoseconds for each of its cables. */
#define SEARCH_STEPS 2000000
/*
 * Above this many nodes times cables the proof that no order exists is skipped, because it takes
 * long.
 */
#define PROOF_WORK_MAX 50000000

struct search {
	const struct mesh_neighbours *neighbours;
	int num_nodes;
	bool ring;     /* the last node must be joined to the first */
	int *path;     /* the nodes so far */
	int *place;    /* of each node in path, -1: not in it */
	int *next;     /* for each place: how many of the node's candidates were tried */
	int *degree;   /* different nodes that each node is joined to */
	int *ranked;   /* candidates of each place, best first: same layout as the entries */
	int *ranks;    /* how many candidates each place has */
	long steps;    /* left */
	bool complete; /* nothing was left out for want of steps */
};

static void search_free(struct search *search)
{
	free(search->path);
	free(search->place);
	free(search->next);
	free(search->degree);
	free(search->ranked);
	free(search->ranks);
}

/* Number of different nodes at the other ends of @node's cables. */
static int distinct_neighbours(const struct mesh_neighbours *n, int node)
{
	int i, k, count = 0;

	for (i = n->first[node]; i < n->first[node + 1]; i++) {
		for (k = n->first[node]; k < i && n->nodes[k] != n->nodes[i]; k++)
			;
		count += k == i;
	}
	return count;
}

static int search_init(struct search *search, const struct mesh_neighbours *neighbours,
		       int num_nodes)
{
	size_t num = (size_t)num_nodes;
	int node;

	*search = (struct search){
		.neighbours = neighbours,
		.num_nodes = num_nodes,
		.path = calloc(num, sizeof(int)),
		.place = calloc(num, sizeof(int)),
		.next = calloc(num, sizeof(int)),
		.degree = calloc(num, sizeof(int)),
		.ranked = calloc((size_t)neighbours->num_entries + 1, sizeof(int)),
		.ranks = calloc(num, sizeof(int)),
	};
	if (!search->path || !search->place || !search->next || !search->degree ||
	    !search->ranked || !search->ranks) {
		search_free(search);
		return -ENOMEM;
	}
	for (node = 0; node < num_nodes; node++)
		search->degree[node] = distinct_neighbours(neighbours, node);
	return 0;
}

/* Neighbours of @node that the path has not reached yet. */
static int open_neighbours(const struct search *search, int node)
{
	const struct mesh_neighbours *n = search->neighbours;
	int i, count = 0;

	for (i = n->first[node]; i < n->first[node + 1]; i++)
		count += search->place[n->nodes[i]] < 0;
	return count;
}

/*
 * Lists the nodes to which the path can continue from @node. The neighbour with the fewest free
 * neighbours is first (Warnsdorff's rule), because it is the first to become unreachable.
 */
static void candidates_rank(struct search *search, int node)
{
	const struct mesh_neighbours *n = search->neighbours;
	int *list = search->ranked + n->first[node], count = 0, i, k, free_ones;
	int last = -1;

	for (i = n->first[node]; i < n->first[node + 1]; i++) {
		int other = n->nodes[i];

		if (search->place[other] >= 0 || other == last)
			continue;
		last = other; /* parallel cables are usually adjacent */
		free_ones = open_neighbours(search, other);
		for (k = count; k > 0 && open_neighbours(search, list[k - 1]) > free_ones; k--)
			list[k] = list[k - 1];
		list[k] = other;
		count++;
	}
	search->ranks[node] = count;
	search->next[node] = 0;
}

static void path_append(struct search *search, int node, int length)
{
	search->path[length] = node;
	search->place[node] = length;
	candidates_rank(search, node);
}

/* Walks from @start, and back from dead ends, until all nodes are in the path. */
static bool search_from(struct search *search, int start)
{
	int length = 1, node;

	memset(search->place, 0xff, (size_t)search->num_nodes * sizeof(int));
	path_append(search, start, 0);
	while (length) {
		node = search->path[length - 1];
		if (length == search->num_nodes &&
		    (!search->ring || length < 2 ||
		     mesh_neighbours_joined(search->neighbours, node, start)))
			return true;
		if (search->next[node] == search->ranks[node]) {
			search->place[node] = -1;
			length--;
			continue;
		}
		if (!search->steps--) {
			search->complete = false;
			return false;
		}
		node = search->ranked[search->neighbours->first[node] + search->next[node]++];
		path_append(search, node, length++);
	}
	return false;
}

/* A ring passes through every node: start where there are few neighbours. */
static bool ring_search(struct search *search)
{
	int node, start = 0;

	for (node = 1; node < search->num_nodes; node++)
		if (search->degree[node] < search->degree[start])
			start = node;
	search->ring = true;
	search->steps = SEARCH_STEPS;
	search->complete = true;
	return search_from(search, start);
}

/* A line starts at a node that has one neighbour only, if there is any; else it may be any node. */
static bool line_search(struct search *search)
{
	int node, end = -1;
	bool complete = true;

	search->ring = false;
	for (node = 0; node < search->num_nodes && end < 0; node++)
		if (search->degree[node] == 1)
			end = node;
	for (node = 0; node < search->num_nodes; node++) {
		if (end >= 0 && node != end)
			continue;
		search->steps = SEARCH_STEPS / (end >= 0 ? 1 : search->num_nodes) + 1;
		search->complete = true;
		if (search_from(search, node))
			return true;
		complete = complete && search->complete;
	}
	search->complete = complete;
	return false;
}

/* Rules out orders by looking at single nodes, before any search. */
struct excluded {
	bool ring;
	bool line;
};

/*
 * A ring needs two neighbours at every node, and stays connected when any node is removed. A line
 * has at most two ends, and falls into at most two parts.
 */
static int orders_exclude(const struct search *search, struct excluded *excluded)
{
	int num = search->num_nodes, node, parts, ends = 0;
	int *seen = calloc((size_t)num, sizeof(*seen)),
	    *queue = calloc((size_t)num, sizeof(*queue));

	if (!seen || !queue) {
		free(seen);
		free(queue);
		return -ENOMEM;
	}
	parts = mesh_neighbours_parts(search->neighbours, num, -1, seen, queue);
	*excluded = (struct excluded){parts > 1, parts > 1};
	for (node = 0; node < num; node++)
		ends += search->degree[node] == 1;
	excluded->ring |= num > 2 && ends > 0;
	excluded->line |= ends > 2;
	if ((long long)num * search->neighbours->num_entries > PROOF_WORK_MAX)
		num = 0;
	for (node = 0; node < num && !excluded->line; node++) {
		parts = mesh_neighbours_parts(search->neighbours, num, node, seen, queue);
		excluded->ring |= parts > 1;
		excluded->line |= parts > 2;
	}
	free(seen);
	free(queue);
	return 0;
}

/* The last resort: depth first, so that most nodes directly follow a neighbour. */
static void gaps_order(struct search *search, int *nodes)
{
	int start, count = 0, depth;

	memset(search->place, 0xff, (size_t)search->num_nodes * sizeof(int));
	for (start = 0; start < search->num_nodes; start++) {
		if (search->place[start] >= 0)
			continue;
		path_append(search, start, 0);
		nodes[count++] = start;
		for (depth = 1; depth;) {
			int node = search->path[depth - 1];

			candidates_rank(search, node);
			if (!search->ranks[node]) {
				depth--;
				continue;
			}
			node = search->ranked[search->neighbours->first[node]];
			search->path[depth] = node;
			search->place[node] = depth++;
			nodes[count++] = node;
		}
	}
}

static int gaps_count(const struct mesh_neighbours *neighbours, int num_nodes, const int *nodes)
{
	int rank, gaps = 0;

	for (rank = 1; rank < num_nodes; rank++)
		gaps += !mesh_neighbours_joined(neighbours, nodes[rank - 1], nodes[rank]);
	return gaps;
}

static bool order_closes(const struct mesh_neighbours *neighbours, int num_nodes, const int *nodes)
{
	return num_nodes < 2 || mesh_neighbours_joined(neighbours, nodes[num_nodes - 1], nodes[0]);
}

/* Tries a ring and then a line, as far as they are still possible; order->nodes has room. */
static int order_search(struct search *search, const int *hint, struct mesh_rank_order *order)
{
	size_t bytes = (size_t)search->num_nodes * sizeof(int);
	struct excluded excluded;
	bool hint_is_line = hint && !gaps_count(search->neighbours, search->num_nodes, hint);
	bool ring_proven;
	int ret;

	order->proven = true;
	order->kind = MESH_ORDER_RING;
	if (hint_is_line && order_closes(search->neighbours, search->num_nodes, hint)) {
		memcpy(order->nodes, hint, bytes);
		return 0;
	}
	ret = orders_exclude(search, &excluded);
	if (ret)
		return ret;
	if (!excluded.ring && ring_search(search)) {
		memcpy(order->nodes, search->path, bytes);
		return 0;
	}
	ring_proven = excluded.ring || search->complete;
	order->kind = MESH_ORDER_LINE;
	order->proven = ring_proven;
	if (hint_is_line || (!excluded.line && line_search(search))) {
		memcpy(order->nodes, hint_is_line ? hint : search->path, bytes);
		return 0;
	}
	order->kind = MESH_ORDER_GAPS;
	order->proven = ring_proven && (excluded.line || search->complete);
	gaps_order(search, order->nodes);
	return 0;
}

int mesh_rank_order_find(const struct mesh_topology *topology, const int *hint,
			 struct mesh_rank_order *order)
{
	struct mesh_rank_order result = {0};
	struct mesh_neighbours neighbours;
	struct search search;
	int ret;

	ret = mesh_neighbours_load(topology, &neighbours);
	if (ret)
		return ret;
	ret = search_init(&search, &neighbours, topology->num_nodes);
	if (ret)
		goto out_neighbours;
	result.nodes = calloc((size_t)topology->num_nodes, sizeof(*result.nodes));
	ret = result.nodes ? order_search(&search, hint, &result) : -ENOMEM;
	if (!ret) {
		result.num_gaps = gaps_count(&neighbours, topology->num_nodes, result.nodes);
		*order = result;
	} else {
		free(result.nodes);
	}
	search_free(&search);
out_neighbours:
	mesh_neighbours_free(&neighbours);
	return ret;
}

void mesh_rank_order_free(struct mesh_rank_order *order)
{
	free(order->nodes);
	memset(order, 0, sizeof(*order));
}
