/* SPDX-License-Identifier: Apache-2.0 */
/* site_order.c - an order of ranks in which those of one site follow each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/site_order.h"

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
	int rank, gaps = 0;
	bool closes = work->num < 2 ||
		      mesh_neighbours_joined(&work->neighbours, work->nodes[work->num - 1],
					     work->nodes[0]);

	for (rank = 1; rank < work->num; rank++)
		gaps += !mesh_neighbours_joined(&work->neighbours, work->nodes[rank - 1],
						work->nodes[rank]);
	order->num_gaps = gaps;
	order->kind = gaps ? MESH_ORDER_GAPS : closes ? MESH_ORDER_RING : MESH_ORDER_LINE;
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
