/* SPDX-License-Identifier: Apache-2.0 */
/* rank_order.c - finds an order of ranks in which each is cabled to the next. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rank_order.h"
#include "plan/topology.h"

/* Steps of one search: one node tried, some tens of nanoseconds for each of its cables. */
#define SEARCH_STEPS 2000000
/* Behind the last of a node's candidates. */
#define NO_CANDIDATE INT_MAX

struct search {
	const struct mesh_neighbours *neighbours;
	int num_nodes;
	bool ring;     /* the last node must be joined to the first */
	int *path;     /* the nodes so far */
	int *place;    /* of each node in path, -1: not in it */
	long steps;    /* left */
	bool complete; /* nothing was left out for want of steps */
};

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
 * The candidate after @last (-1: the first) of the nodes to which the path can continue from @node;
 * its remainder by num_nodes is the node. The neighbour with the fewest free neighbours is first
 * (Warnsdorff's rule), because it is the first to become unreachable.
 */
static int candidate_next(const struct search *search, int node, int last)
{
	const struct mesh_neighbours *n = search->neighbours;
	int i, candidate, next = NO_CANDIDATE;

	for (i = n->first[node]; i < n->first[node + 1]; i++) {
		if (search->place[n->nodes[i]] >= 0)
			continue;
		candidate = open_neighbours(search, n->nodes[i]) * search->num_nodes + n->nodes[i];
		if (candidate > last && candidate < next)
			next = candidate;
	}
	return next;
}

/* Appends all other nodes to a path of @length, and takes back those that lead nowhere. */
static bool path_complete(struct search *search, int length)
{
	int node = search->path[length - 1], candidate = -1, next;

	if (length == search->num_nodes)
		return !search->ring || length < 2 ||
		       mesh_neighbours_joined(search->neighbours, node, search->path[0]);
	while ((candidate = candidate_next(search, node, candidate)) != NO_CANDIDATE) {
		if (search->steps-- <= 0) {
			search->complete = false;
			return false;
		}
		next = candidate % search->num_nodes;
		search->path[length] = next;
		search->place[next] = length;
		if (path_complete(search, length + 1))
			return true;
		search->place[next] = -1;
	}
	return false;
}

static bool search_from(struct search *search, int start, long steps)
{
	memset(search->place, 0xff, (size_t)search->num_nodes * sizeof(int));
	search->path[0] = start;
	search->place[start] = 0;
	search->steps = steps;
	return path_complete(search, 1);
}

/* A ring passes through every node: start where there are few neighbours. */
static bool ring_search(struct search *search)
{
	int node, start = 0, fewest = INT_MAX, num;

	for (node = 0; node < search->num_nodes; node++) {
		num = distinct_neighbours(search->neighbours, node);
		if (num >= fewest)
			continue;
		fewest = num;
		start = node;
	}
	search->ring = true;
	search->complete = true;
	return search_from(search, start, SEARCH_STEPS);
}

/* A line starts at a node that has one neighbour only, if there is any; else it may be any node. */
static bool line_search(struct search *search)
{
	int node, num = search->num_nodes;

	search->ring = false;
	search->complete = true;
	for (node = 0; node < num; node++)
		if (distinct_neighbours(search->neighbours, node) == 1)
			return search_from(search, node, SEARCH_STEPS);
	for (node = 0; node < num; node++)
		if (search_from(search, node, SEARCH_STEPS / num + 1))
			return true;
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
static void orders_exclude(const struct search *search, struct excluded *excluded)
{
	int num = search->num_nodes, node, parts, ends = 0;

	/* The memory of the path is free before the search. */
	parts = mesh_neighbours_parts(search->neighbours, num, -1, search->place, search->path);
	*excluded = (struct excluded){parts > 1, parts > 1};
	for (node = 0; node < num; node++)
		ends += distinct_neighbours(search->neighbours, node) == 1;
	excluded->ring |= num > 2 && ends > 0;
	excluded->line |= ends > 2;
	for (node = 0; node < num && !excluded->line; node++) {
		parts = mesh_neighbours_parts(search->neighbours, num, node, search->place,
					      search->path);
		excluded->ring |= parts > 1;
		excluded->line |= parts > 2;
	}
}

/* Appends @node, and then what can be reached from it, depth first. Returns the new number. */
static int nodes_append(struct search *search, int node, int *nodes, int count)
{
	int candidate;

	search->place[node] = count;
	nodes[count++] = node;
	while ((candidate = candidate_next(search, node, -1)) != NO_CANDIDATE)
		count = nodes_append(search, candidate % search->num_nodes, nodes, count);
	return count;
}

/* The last resort: depth first, so that most nodes directly follow a neighbour. */
static void gaps_order(struct search *search, int *nodes)
{
	int start, count = 0;

	memset(search->place, 0xff, (size_t)search->num_nodes * sizeof(int));
	for (start = 0; start < search->num_nodes; start++) {
		if (search->place[start] < 0)
			count = nodes_append(search, start, nodes, count);
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
static void order_search(struct search *search, const int *hint, struct mesh_rank_order *order)
{
	size_t bytes = (size_t)search->num_nodes * sizeof(int);
	struct excluded excluded;
	bool hint_is_line = hint && !gaps_count(search->neighbours, search->num_nodes, hint);
	bool ring_proven;

	order->proven = true;
	order->kind = MESH_ORDER_RING;
	if (hint_is_line && order_closes(search->neighbours, search->num_nodes, hint)) {
		memcpy(order->nodes, hint, bytes);
		return;
	}
	orders_exclude(search, &excluded);
	if (!excluded.ring && ring_search(search)) {
		memcpy(order->nodes, search->path, bytes);
		return;
	}
	ring_proven = excluded.ring || search->complete;
	order->kind = MESH_ORDER_LINE;
	order->proven = ring_proven;
	if (hint_is_line || (!excluded.line && line_search(search))) {
		memcpy(order->nodes, hint_is_line ? hint : search->path, bytes);
		return;
	}
	order->kind = MESH_ORDER_GAPS;
	order->proven = ring_proven && (excluded.line || search->complete);
	gaps_order(search, order->nodes);
}

int mesh_rank_order_find(const struct mesh_topology *topology, const int *hint,
			 struct mesh_rank_order *order)
{
	size_t num = (size_t)topology->num_nodes;
	struct mesh_rank_order result = {.nodes = calloc(num, sizeof(int))};
	struct mesh_neighbours neighbours = {.num_entries = 0};
	struct search search = {
		.neighbours = &neighbours,
		.num_nodes = topology->num_nodes,
		.path = calloc(num, sizeof(int)),
		.place = calloc(num, sizeof(int)),
	};
	int ret = result.nodes && search.path && search.place
			  ? mesh_neighbours_load(topology, &neighbours)
			  : -ENOMEM;

	if (!ret) {
		order_search(&search, hint, &result);
		result.num_gaps = gaps_count(&neighbours, topology->num_nodes, result.nodes);
		*order = result;
	} else {
		free(result.nodes);
	}
	free(search.path);
	free(search.place);
	mesh_neighbours_free(&neighbours);
	return ret;
}

void mesh_rank_order_free(struct mesh_rank_order *order)
{
	free(order->nodes);
	memset(order, 0, sizeof(*order));
}

struct work {
	const struct mesh_topology *topology;
	const int *sites;
	int num_sites;
	struct mesh_neighbours neighbours;
	int *place; /* of each node among those of its site */
	int *inner; /* its site's nodes, in the order of one site */
	int *turned;
	int *nodes; /* the whole order so far */
	int num;
};

/* ---- one site ------------------------------------------------------------------------------ */

/* The cables inside a site, between its nodes' places. */
static int site_topology(struct work *work, int site, struct mesh_topology *inside)
{
	const struct mesh_topology *all = work->topology;
	int i, num = 0, ret;

	for (i = 0; i < all->num_nodes; i++) {
		if (work->sites[i] != site)
			continue;
		work->inner[num] = i;
		work->place[i] = num++;
	}
	ret = mesh_topology_init(inside, num);
	for (i = 0; i < all->num_cables && !ret; i++) {
		struct mesh_cable_end a = all->cables[i].ends[0], b = all->cables[i].ends[1];

		if (work->sites[a.node] != site || work->sites[b.node] != site)
			continue;
		a.node = work->place[a.node];
		b.node = work->place[b.node];
		ret = mesh_topology_add(inside, a, b);
	}
	return ret;
}

/* True if a cable joins the node to a node of this site. */
static bool reaches_site(const struct work *work, int node, int site)
{
	const struct mesh_neighbours *n = &work->neighbours;
	int i;

	for (i = n->first[node]; i < n->first[node + 1]; i++) {
		if (work->sites[n->nodes[i]] == site)
			return true;
	}
	return false;
}

/*
 * What speaks for an order of a site that begins and ends with these: how many of its two crossings
 * are cables, and the one between two ranks before that from the last rank to the first.
 */
static int ends_score(const struct work *work, int site, int first, int last)
{
	const struct mesh_neighbours *neighbours = &work->neighbours;
	bool is_last = site == work->num_sites - 1;
	bool before, behind;

	before = site ? mesh_neighbours_joined(neighbours, work->nodes[work->num - 1], first)
		      : reaches_site(work, first, work->num_sites - 1);
	behind = is_last ? mesh_neighbours_joined(neighbours, last, work->nodes[0])
			 : reaches_site(work, last, site + 1);
	return before * (site ? 2 : 1) + behind * (is_last ? 1 : 2);
}

/*
 * Appends a site's nodes. A ring may begin with any of them and go round either way, another order
 * may be turned round.
 */
static void site_append(struct work *work, int site, const struct mesh_rank_order *order, int num)
{
	int begins = order->kind == MESH_ORDER_RING ? num : 1, best = -1, at = 0, step = 1, i, back;

	for (i = 0; i < begins; i++) {
		for (back = 0; back < 2; back++) {
			int first = back ? (i + num - 1) % num : i;
			int last = back ? i : (i + num - 1) % num;
			int score = ends_score(work, site, work->inner[order->nodes[first]],
					       work->inner[order->nodes[last]]);

			if (score <= best)
				continue;
			best = score;
			at = first;
			step = back ? num - 1 : 1;
		}
	}
	for (i = 0; i < num; i++, at = (at + step) % num)
		work->turned[i] = work->inner[order->nodes[at]];
	memcpy(work->nodes + work->num, work->turned, (size_t)num * sizeof(int));
	work->num += num;
}

static int site_take(struct work *work, int site)
{
	struct mesh_topology inside;
	struct mesh_rank_order order;
	int ret = site_topology(work, site, &inside);

	if (!ret)
		ret = mesh_rank_order_find(&inside, NULL, &order);
	if (!ret) {
		site_append(work, site, &order, inside.num_nodes);
		mesh_rank_order_free(&order);
	}
	mesh_topology_free(&inside);
	return ret;
}

/* ---- all sites ----------------------------------------------------------------------------- */

static int work_open(struct work *work)
{
	size_t num = (size_t)work->topology->num_nodes;
	int ret = mesh_neighbours_load(work->topology, &work->neighbours);

	if (ret)
		return ret;
	work->place = calloc(num, sizeof(int));
	work->inner = calloc(num, sizeof(int));
	work->turned = calloc(num, sizeof(int));
	work->nodes = calloc(num, sizeof(int));
	return work->place && work->inner && work->turned && work->nodes ? 0 : -ENOMEM;
}

/* What the whole order is. */
static void order_judge(const struct work *work, struct mesh_rank_order *order)
{
	order->num_gaps = gaps_count(&work->neighbours, work->num, work->nodes);
	order->kind = order->num_gaps ? MESH_ORDER_GAPS : MESH_ORDER_LINE;
	if (!order->num_gaps && order_closes(&work->neighbours, work->num, work->nodes))
		order->kind = MESH_ORDER_RING;
	order->proven = order->kind == MESH_ORDER_RING;
}

int mesh_site_order_find(const struct mesh_topology *topology, const int *sites, int num_sites,
			 struct mesh_rank_order *order)
{
	struct work work = {.topology = topology, .sites = sites, .num_sites = num_sites};
	int site, ret = work_open(&work);

	for (site = 0; site < num_sites && !ret; site++)
		ret = site_take(&work, site);
	if (!ret) {
		order_judge(&work, order);
		order->nodes = work.nodes;
		work.nodes = NULL;
	}
	free(work.place);
	free(work.inner);
	free(work.turned);
	free(work.nodes);
	mesh_neighbours_free(&work.neighbours);
	return ret;
}
