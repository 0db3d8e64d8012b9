/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the mesh as its nodes describe it, and the routes through it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nic/addr.h"
#include "nic/graph.h"

void mesh_graph_finish(struct mesh_graph *graph)
{
	int i;

	for (i = 0; i < graph->num_nodes; i++)
		free(graph->nodes[i].links);
	free(graph->nodes);
	memset(graph, 0, sizeof(*graph));
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* The place of this id, or the free one where it belongs: there are more places than nodes. */
static int place_of(const struct mesh_graph *graph, uint64_t id)
{
	int place = (int)((id * 0x9e3779b97f4a7c15u >> 40) % (2 * MESH_GRAPH_NODES_MAX));

	while (graph->places[place] && graph->nodes[graph->places[place] - 1].id != id)
		place = (place + 1) % (2 * MESH_GRAPH_NODES_MAX);
	return place;
}

int mesh_graph_find(const struct mesh_graph *graph, uint64_t id)
{
	return (int)graph->places[place_of(graph, id)] - 1;
}

int mesh_graph_enter(struct mesh_graph *graph, uint64_t id)
{
	int place = place_of(graph, id);
	struct mesh_graph_node *nodes;

	if (graph->places[place])
		return graph->places[place] - 1;
	if (graph->num_nodes == MESH_GRAPH_NODES_MAX)
		return -ENOSPC;
	nodes = mesh_array_room(graph->nodes, (size_t)graph->num_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	graph->nodes = nodes;
	nodes[graph->num_nodes] = (struct mesh_graph_node){.id = id};
	graph->places[place] = (uint16_t)(graph->num_nodes + 1);
	return graph->num_nodes++;
}

static int link_compare(const void *left, const void *right)
{
	const struct mesh_graph_link *a = left, *b = right;

	if (a->node_id != b->node_id)
		return a->node_id < b->node_id ? -1 : 1;
	if (a->nic != b->nic)
		return a->nic < b->nic ? -1 : 1;
	return (a->peer_nic > b->peer_nic) - (a->peer_nic < b->peer_nic);
}

/* Appends those that can be, up to the limit. Returns the new number. */
static int links_append(struct mesh_graph_link *to, int num, uint64_t id,
			const struct mesh_graph_link *links, int num_links)
{
	int i;

	for (i = 0; i < num_links && num < MESH_GRAPH_LINKS_MAX; i++) {
		if (links[i].node_id != id && links[i].nic < MESH_NICS_MAX &&
		    links[i].peer_nic < MESH_NICS_MAX)
			to[num++] = links[i];
	}
	return num;
}

/*
 * Orders them, and drops those that are listed twice: one of them is enough for RDMA. Returns the
 * new number.
 */
static int links_order(struct mesh_graph_link *links, int num)
{
	int i, kept = 0;

	qsort(links, (size_t)num, sizeof(*links), link_compare);
	for (i = 0; i < num; i++) {
		if (!kept || link_compare(&links[kept - 1], &links[i]))
			links[kept++] = links[i];
		else
			links[kept - 1].rdma |= links[i].rdma;
	}
	return kept;
}

int mesh_graph_report(struct mesh_graph *graph, uint64_t id, bool relays, bool add,
		      const struct mesh_graph_link *links, int num_links)
{
	struct mesh_graph_link found[MESH_GRAPH_LINKS_MAX], *copy;
	struct mesh_graph_node *node;
	int num = links_append(found, 0, id, links, num_links), index = mesh_graph_enter(graph, id);

	if (index < 0)
		return index;
	if (add)
		num = links_append(found, num, id, graph->nodes[index].links,
				   graph->nodes[index].num_links);
	num = links_order(found, num);
	copy = malloc((size_t)(num ? num : 1) * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	if (num)
		memcpy(copy, found, (size_t)num * sizeof(*copy));
	node = &graph->nodes[index];
	free(node->links);
	node->links = copy;
	node->num_links = num;
	node->relays = relays;
	return index;
}

/* ---- links --------------------------------------------------------------------------------- */

int mesh_graph_link_find(const struct mesh_graph_node *node, uint64_t id)
{
	int low = 0, high = node->num_links, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (node->links[middle].node_id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < node->num_links && node->links[low].node_id == id ? low : node->num_links;
}

const struct mesh_graph_link *mesh_graph_is_confirmed(const struct mesh_graph_node *other,
						      uint64_t id,
						      const struct mesh_graph_link *link)
{
	int i;

	for (i = mesh_graph_link_find(other, id);
	     i < other->num_links && other->links[i].node_id == id; i++) {
		if (other->links[i].nic == link->peer_nic && other->links[i].peer_nic == link->nic)
			return &other->links[i];
	}
	return NULL;
}

static uint32_t slower(uint32_t a, uint32_t b)
{
	if (!a || !b)
		a = b = a + b;
	return a < b ? a : b;
}

/* @rdma: of links with RDMA at both ends only; @drained: of the drained links as well */
static uint32_t width_of(const struct mesh_graph *graph, int a, int b, bool rdma, bool drained)
{
	const struct mesh_graph_node *from = &graph->nodes[a], *to = &graph->nodes[b];
	const struct mesh_graph_link *link, *back;
	uint32_t nics = 0, peer_nics = 0, speed;
	uint64_t width = 0;
	int i;

	for (i = mesh_graph_link_find(from, to->id); i < from->num_links; i++) {
		link = &from->links[i];
		if (link->node_id != to->id)
			break;
		if (nics & 1u << link->nic || peer_nics & 1u << link->peer_nic ||
		    (rdma && !link->rdma))
			continue;
		back = mesh_graph_is_confirmed(to, from->id, link);
		if (!back || (rdma && !back->rdma) ||
		    (!drained && (link->drained || back->drained)))
			continue;
		nics |= 1u << link->nic;
		peer_nics |= 1u << link->peer_nic;
		speed = slower(link->speed_mbps, back->speed_mbps);
		width += speed ? speed : 1;
	}
	return width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
}

struct mesh_graph_hop mesh_graph_hop(const struct mesh_graph *graph, int a, int b)
{
	struct mesh_graph_hop hop = {.mbps = width_of(graph, a, b, false, false)};

	if (!hop.mbps) {
		hop.mbps = width_of(graph, a, b, false, true);
		hop.drained = hop.mbps > 0;
	}
	hop.rdma_mbps = width_of(graph, a, b, true, hop.drained);
	return hop;
}

/* ---- routes ------------------------------------------------------------------------------- */

/*
 * Routes of the least length that share no relay are a flow in the graph of shortest routes, where
 * each node passes one unit: each further route is an augmenting path, which may give parts of
 * earlier routes to each other. A greedy choice would miss some: the first route can block both of
 * two others. The widest hops are used first, so the first route is the widest. When no more of a
 * length are found, their relays are taken out, and longer ones are looked for.
 *
 * This is done first over the hops that are wanted most, and then over more and more of them:
 * enum stage has the order.
 */
#define FAR INT32_MAX
#define NONE (-1)
/* Widths that are told apart in one search; hops that are narrower than these count as equal. */
#define WIDTHS_MAX 16

/* Both ends have reported this hop. */
struct hop {
	int to;
	struct mesh_graph_hop width;
};

/* Which hops may be used. In the first of each two only those with RDMA, and the direct one. */
enum stage {
	STAGE_INSIDE_RDMA,
	STAGE_INSIDE, /* relays in the sites of the two ends */
	STAGE_SITES_RDMA,
	STAGE_SITES, /* those in other sites, too */
	STAGE_DRAINED_RDMA,
	STAGE_DRAINED, /* over hops that are drained, too: these come last */
	STAGES
};

struct search {
	const struct mesh_graph *graph;
	struct hop *hops; /* those of node i: hops[first[i]] to hops[first[i + 1] - 1] */
	int *first;
	int from, to, num;
	enum stage stage;
	bool *taken;	      /* no route may pass it; of @to: the hop from one end to the other */
	int *distance;	      /* to the target, over nodes that are not taken */
	int *next, *previous; /* the flow through each relay; NONE: it has none */
	int *queue;
	uint32_t least;	      /* width of the hops that the flow may use */
	bool *entered, *left; /* in the search for one route: before and behind the node's flow */
};

/* ---- hops ---------------------------------------------------------------------------------- */

static void hops_read(struct search *search)
{
	const struct mesh_graph *graph = search->graph;
	const struct mesh_graph_node *node;
	struct mesh_graph_hop width;
	int i, k, to, num = 0;

	for (i = 0; i < graph->num_nodes; i++) {
		search->first[i] = num;
		node = &graph->nodes[i];
		for (k = 0; k < node->num_links; k++) {
			if (k && node->links[k].node_id == node->links[k - 1].node_id)
				continue; /* all links to a node are one hop */
			to = mesh_graph_find(graph, node->links[k].node_id);
			if (to < 0)
				continue;
			width = mesh_graph_hop(graph, i, to);
			if (!width.mbps)
				continue;
			search->hops[num++] = (struct hop){.to = to, .width = width};
		}
	}
	search->first[i] = num;
}

/* A node without a site is in any. */
static bool is_inside(const struct search *search, int node)
{
	const struct mesh_graph_node *nodes = search->graph->nodes;
	uint32_t site = nodes[node].site, from = nodes[search->from].site;
	uint32_t to = nodes[search->to].site;

	return !site || !from || !to || site == from || site == to;
}

static bool may_pass(const struct search *search, int node)
{
	if (node == search->from || node == search->to)
		return true;
	return !search->taken[node] &&
	       (search->stage >= STAGE_SITES_RDMA || is_inside(search, node));
}

/* From one end to the other. */
static bool is_direct(const struct search *search, int at, const struct hop *hop)
{
	return (at == search->from || at == search->to) &&
	       (hop->to == search->from || hop->to == search->to);
}

static bool wants_rdma(const struct search *search)
{
	return search->stage % 2 == STAGE_INSIDE_RDMA;
}

static bool may_use(const struct search *search, int at, const struct hop *hop)
{
	if (hop->width.drained && search->stage < STAGE_DRAINED_RDMA)
		return false;
	if (is_direct(search, at, hop))
		return !search->taken[search->to];
	return (hop->width.rdma_mbps || !wants_rdma(search)) && may_pass(search, hop->to);
}

/* Of what a route of this search takes there. */
static uint32_t hop_width(const struct search *search, const struct hop *hop)
{
	return wants_rdma(search) && hop->width.rdma_mbps ? hop->width.rdma_mbps : hop->width.mbps;
}

/* Returns the length of the shortest route in hops, or FAR. */
static int distances_find(struct search *search, int hops_max)
{
	int head = 0, tail = 0, at, i;

	for (i = 0; i < search->num; i++)
		search->distance[i] = FAR;
	search->distance[search->to] = 0;
	search->queue[tail++] = search->to;
	while (head < tail) {
		at = search->queue[head++];
		if (search->distance[at] == hops_max || at == search->from)
			continue;
		for (i = search->first[at]; i < search->first[at + 1]; i++) {
			if (!may_use(search, at, &search->hops[i]) ||
			    search->distance[search->hops[i].to] != FAR)
				continue;
			search->distance[search->hops[i].to] = search->distance[at] + 1;
			search->queue[tail++] = search->hops[i].to;
		}
	}
	return search->distance[search->from];
}

/* ---- flow ---------------------------------------------------------------------------------- */

/* True if this hop is part of a shortest route. */
static bool leads_nearer(const struct search *search, int at, const struct hop *hop)
{
	return may_use(search, at, hop) && search->distance[hop->to] == search->distance[at] - 1 &&
	       search->distance[hop->to] != FAR;
}

static bool hop_has_flow(const struct search *search, int at, int to)
{
	return to == search->to ? search->next[at] == to : search->previous[to] == at;
}

static bool node_enter(struct search *search, int node);

/*
 * Finds a way to the target for the flow behind the node @at, over hops without flow; else takes
 * the flow through @at away, and finds one for the node before it.
 */
static bool node_leave(struct search *search, int at)
{
	const struct hop *hop, *end = &search->hops[search->first[at + 1]];

	if (search->left[at])
		return false;
	search->left[at] = true;
	for (hop = &search->hops[search->first[at]]; hop < end; hop++) {
		if (!leads_nearer(search, at, hop) || hop_width(search, hop) < search->least ||
		    hop_has_flow(search, at, hop->to) ||
		    (hop->to != search->to && !node_enter(search, hop->to)))
			continue;
		search->next[at] = hop->to;
		search->previous[hop->to] = at;
		return true;
	}
	if (search->previous[at] == NONE || !node_enter(search, at))
		return false;
	search->next[at] = search->previous[at] = NONE;
	return true;
}

/* Flow comes to this node: it goes on, or takes the place of that which is there. */
static bool node_enter(struct search *search, int node)
{
	if (search->entered[node])
		return false;
	search->entered[node] = true;
	return node_leave(search, search->previous[node] == NONE ? node : search->previous[node]);
}

/* Adds a route to the flow. Returns false if there is no further one. */
static bool flow_augment(struct search *search)
{
	memset(search->entered, 0, (size_t)search->num * sizeof(*search->entered));
	memset(search->left, 0, (size_t)search->num * sizeof(*search->left));
	return node_leave(search, search->from);
}

/* The greatest width of a hop below @limit; 0: there is none. */
static uint32_t width_below(const struct search *search, uint32_t limit)
{
	uint32_t width = 0, found;
	int i;

	for (i = 0; i < search->first[search->num]; i++) {
		found = hop_width(search, &search->hops[i]);
		if (found < limit && found > width)
			width = found;
	}
	return width;
}

/* Finds up to @wanted routes of the least length. */
static void flow_find(struct search *search, int wanted)
{
	int i, widths = 0;

	for (i = 0; i < search->num; i++)
		search->next[i] = search->previous[i] = NONE;
	search->least = UINT32_MAX;
	while (wanted && (search->least = width_below(search, search->least))) {
		if (++widths > WIDTHS_MAX)
			search->least = 1;
		while (wanted && flow_augment(search))
			wanted--;
	}
}

/* ---- routes -------------------------------------------------------------------------------- */

static const struct hop *hop_find(const struct search *search, int at, int to)
{
	int i;

	for (i = search->first[at]; search->hops[i].to != to; i++)
		continue;
	return &search->hops[i];
}

/* The route whose first hop leads from search->from to @first; its relays are taken. */
static void route_read(struct search *search, int first, struct mesh_route *route)
{
	const struct hop *hop;
	int at = search->from, to = first;

	*route = (struct mesh_route){.width_mbps = UINT32_MAX, .rdma = true};
	for (;;) {
		hop = hop_find(search, at, to);
		if (hop_width(search, hop) < route->width_mbps)
			route->width_mbps = hop_width(search, hop);
		route->drained |= hop->width.drained;
		route->rdma &= hop->width.rdma_mbps > 0;
		route->hops[route->num_relays] = search->graph->nodes[to].id;
		if (to == search->to)
			break;
		search->taken[to] = true;
		route->leaves |= !is_inside(search, to);
		route->num_relays++;
		at = to;
		to = search->next[at];
	}
}

static int wider_first(const void *left, const void *right)
{
	const struct mesh_route *a = left, *b = right;

	if (a->width_mbps != b->width_mbps)
		return a->width_mbps > b->width_mbps ? -1 : 1;
	return a->hops[0] < b->hops[0] ? -1 : a->hops[0] > b->hops[0];
}

bool mesh_route_fits(const struct mesh_route *first, const struct mesh_route *route)
{
	return route->num_relays == first->num_relays && route->drained == first->drained &&
	       route->leaves == first->leaves && route->rdma == first->rdma;
}

/* The routes of the least length there is now. Returns their number. */
static int group_find(struct search *search, int relays_max, struct mesh_route *routes,
		      int routes_max)
{
	int length = distances_find(search, relays_max + 1), i, first, num = 0;

	if (length == FAR)
		return 0;
	if (length == 1) {
		route_read(search, search->to, routes);
		/* Each cable is a path of its own, with RDMA or not. */
		routes->width_mbps = hop_find(search, search->from, search->to)->width.mbps;
		search->taken[search->to] = true;
		return 1;
	}
	flow_find(search, routes_max);
	for (i = search->first[search->from]; i < search->first[search->from + 1]; i++) {
		first = search->hops[i].to;
		if (first != search->to && search->previous[first] == search->from)
			route_read(search, first, &routes[num++]);
	}
	qsort(routes, (size_t)num, sizeof(*routes), wider_first);
	return num;
}

static int search_open(struct search *search)
{
	size_t nodes = (size_t)search->num, hops = 1;
	int i, *numbers = calloc(5 * nodes + 1, sizeof(*numbers));

	for (i = 0; i < search->num; i++)
		hops += (size_t)search->graph->nodes[i].num_links;
	search->hops = calloc(hops, sizeof(*search->hops));
	search->taken = calloc(3 * nodes, sizeof(*search->taken));
	search->first = numbers;
	if (!search->hops || !search->taken || !numbers)
		return -ENOMEM;
	search->distance = search->first + nodes + 1;
	search->next = search->distance + nodes;
	search->previous = search->next + nodes;
	search->queue = search->previous + nodes;
	search->entered = search->taken + nodes;
	search->left = search->entered + nodes;
	return 0;
}

static void search_close(struct search *search)
{
	free(search->hops);
	free(search->taken);
	free(search->first);
}

static int groups_find(struct search *search, int relays_max, struct mesh_route *routes,
		       int routes_max)
{
	int num = 0, found;

	for (search->stage = STAGE_INSIDE_RDMA; search->stage < STAGES; search->stage++) {
		do {
			found = num < routes_max ? group_find(search, relays_max, &routes[num],
							      routes_max - num)
						 : 0;
			num += found;
		} while (found);
	}
	return num;
}

static void nodes_take(struct search *search, const uint64_t *avoided, int num_avoided)
{
	int i, node;

	for (i = 0; i < search->num; i++)
		search->taken[i] = !search->graph->nodes[i].relays;
	for (i = 0; i < num_avoided; i++) {
		node = mesh_graph_find(search->graph, avoided[i]);
		if (node >= 0)
			search->taken[node] = true;
	}
	search->taken[search->to] = false;
}

int mesh_graph_routes(const struct mesh_graph *graph, uint64_t from, uint64_t to, int relays_max,
		      const uint64_t *avoided, int num_avoided, struct mesh_route *routes,
		      int routes_max)
{
	struct search search = {
		.graph = graph,
		.from = mesh_graph_find(graph, from),
		.to = mesh_graph_find(graph, to),
		.num = graph->num_nodes,
	};
	int ret;

	if (search.from < 0 || search.to < 0 || from == to)
		return 0;
	ret = search_open(&search);
	if (!ret) {
		hops_read(&search);
		nodes_take(&search, avoided, num_avoided);
		ret = groups_find(&search, relays_max, routes, routes_max);
	}
	search_close(&search);
	return ret;
}
