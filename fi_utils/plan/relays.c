/* SPDX-License-Identifier: Apache-2.0 */
/* relays.c - which pairs of a planned mesh need relays, and what the cables leave each pair. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/addr.h"
#include "nic/graph.h"

#include "common/relay_choice.h"
#include "plan/make.h"

#define NODES PLAN_RELAYS_NODES_MAX
/* Any figure: only the number of cables matters. */
#define CABLE_MBPS 1000

/* From one node to another, as the routes of @pair lead; every pair has one in each direction. */
struct flow {
	struct plan_pair *pair;
	bool back;
	bool done; /* one of its cables is full */
	double share;
};

struct sharing {
	double cables[NODES][NODES]; /* that join two nodes, 0 or more */
	double used[NODES][NODES];   /* of these, in that direction */
	double part[NODES][NODES];   /* what grows there with the shares that still grow */
	struct flow *flows;
	int num_flows;
};

/* ---- routes -------------------------------------------------------------------------------- */

/* The NIC of @node that is cabled to @other: one for each neighbour, in their order. */
static int nic_of(const struct sharing *sharing, int node, int other)
{
	int i, nic = 0;

	for (i = 0; i < other; i++)
		nic += sharing->cables[node][i] > 0;
	return nic;
}

/* Ids are node numbers plus one. */
static int node_report(const struct sharing *sharing, int num, int node, struct mesh_graph *graph)
{
	struct mesh_graph_link links[NODES];
	int i, ret, num_links = 0;

	for (i = 0; i < num; i++) {
		if (sharing->cables[node][i] <= 0)
			continue;
		if (num_links == MESH_NICS_MAX)
			return -E2BIG;
		links[num_links++] = (struct mesh_graph_link){
			.node_id = (uint64_t)i + 1,
			.speed_mbps = (uint32_t)(sharing->cables[node][i] * CABLE_MBPS),
			.nic = (uint8_t)nic_of(sharing, node, i),
			.peer_nic = (uint8_t)nic_of(sharing, i, node),
		};
	}
	ret = mesh_graph_report(graph, (uint64_t)node + 1, true, false, links, num_links);
	return ret < 0 ? ret : 0;
}

static int pairs_route(const struct mesh_plan *plan, const struct sharing *sharing,
		       struct plan_relays *relays)
{
	const int num = plan->topology.num_nodes;
	struct mesh_graph graph;
	int i, k, ret = 0;

	memset(&graph, 0, sizeof(graph));
	for (i = 0; i < num && !ret; i++) {
		ret = node_report(sharing, num, i, &graph);
		if (!ret && plan->num_sites > 1)
			graph.nodes[i].site = (uint32_t)plan->sites[i] + 1;
	}
	relays->all_reached = true;
	for (i = 0; i < num; i++) {
		for (k = i + 1; k < num && !ret; k++) {
			struct plan_pair *pair = &relays->pairs[relays->num_pairs++];

			*pair = (struct plan_pair){.from = i, .to = k};
			if (sharing->cables[i][k] > 0)
				pair->routes.num = 1; /* a cable is all that is used */
			else
				ret = relay_routes_find(&graph, i, k, false, &pair->routes);
			relays->all_reached &= pair->routes.num > 0;
		}
	}
	mesh_graph_finish(&graph);
	return ret;
}

/* ---- bandwidth ----------------------------------------------------------------------------- */

/* The nodes of a route of the flow, ends included. Returns their number. */
static int route_nodes(const struct flow *flow, int route, int *nodes)
{
	const struct plan_pair *pair = flow->pair;
	int i, num = 0;

	nodes[num++] = flow->back ? pair->to : pair->from;
	for (i = 0; i < pair->routes.num_relays; i++)
		nodes[num++] =
			pair->routes
				.relays[route][flow->back ? pair->routes.num_relays - 1 - i : i];
	nodes[num++] = flow->back ? pair->from : pair->to;
	return num;
}

/* Adds the flow's part of a growth of 1 to each hop that it uses. */
static void flow_add(const struct flow *flow, double part[NODES][NODES])
{
	int nodes[MESH_ROUTE_RELAYS_MAX + 2], route, i, num;

	for (route = 0; route < flow->pair->routes.num; route++) {
		num = route_nodes(flow, route, nodes);
		for (i = 0; i + 1 < num; i++)
			part[nodes[i]][nodes[i + 1]] += 1.0 / flow->pair->routes.num;
	}
}

static bool is_full(const struct sharing *sharing, int from, int to)
{
	return sharing->used[from][to] > sharing->cables[from][to] * (1 - 1e-9);
}

static bool flow_is_blocked(const struct sharing *sharing, const struct flow *flow)
{
	int nodes[MESH_ROUTE_RELAYS_MAX + 2], route, i, num;

	for (route = 0; route < flow->pair->routes.num; route++) {
		num = route_nodes(flow, route, nodes);
		for (i = 0; i + 1 < num; i++) {
			if (is_full(sharing, nodes[i], nodes[i + 1]))
				return true;
		}
	}
	return false;
}

/* By how much all flows that are not done may grow; 0: none is left. */
static double growth_find(const struct sharing *sharing, int num)
{
	double growth = 0, room;
	int i, k;

	for (i = 0; i < num; i++) {
		for (k = 0; k < num; k++) {
			if (sharing->part[i][k] <= 0)
				continue;
			room = (sharing->cables[i][k] - sharing->used[i][k]) / sharing->part[i][k];
			if (growth <= 0 || room < growth)
				growth = room;
		}
	}
	return growth;
}

static void cables_share(struct sharing *sharing, int num)
{
	double growth;
	int i, k;

	for (;;) {
		memset(sharing->part, 0, sizeof(sharing->part));
		for (i = 0; i < sharing->num_flows; i++) {
			if (!sharing->flows[i].done)
				flow_add(&sharing->flows[i], sharing->part);
		}
		growth = growth_find(sharing, num);
		if (growth <= 0)
			return;
		for (i = 0; i < num; i++) {
			for (k = 0; k < num; k++)
				sharing->used[i][k] += growth * sharing->part[i][k];
		}
		for (i = 0; i < sharing->num_flows; i++) {
			struct flow *flow = &sharing->flows[i];

			if (flow->done)
				continue;
			flow->share += growth;
			flow->done = flow_is_blocked(sharing, flow);
		}
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void cables_count(const struct mesh_plan *plan, struct sharing *sharing)
{
	const struct mesh_topology *topology = &plan->topology;
	int i, a, b;

	for (i = 0; i < topology->num_cables; i++) {
		a = topology->cables[i].ends[0].node;
		b = topology->cables[i].ends[1].node;
		sharing->cables[a][b] += 1.0 / plan->halves;
		sharing->cables[b][a] += 1.0 / plan->halves;
	}
}

static void flows_fill(struct sharing *sharing, struct plan_relays *relays)
{
	int i;

	for (i = 0; i < 2 * relays->num_pairs; i++) {
		struct plan_pair *pair = &relays->pairs[i / 2];

		if (pair->routes.num)
			sharing->flows[sharing->num_flows++] =
				(struct flow){.pair = pair, .back = i % 2};
	}
}

/* The lesser of both directions. */
static void shares_take(const struct sharing *sharing)
{
	int i;

	for (i = 0; i < sharing->num_flows; i++) {
		const struct flow *flow = &sharing->flows[i];

		if (!flow->back || flow->share < flow->pair->share)
			flow->pair->share = flow->share;
	}
}

int plan_relays_find(const struct mesh_plan *plan, struct plan_relays *relays)
{
	int num = plan->topology.num_nodes, ret = -ENOMEM;
	size_t num_pairs = (size_t)num * (size_t)(num - 1) / 2;
	struct sharing *sharing;

	memset(relays, 0, sizeof(*relays));
	if (num > PLAN_RELAYS_NODES_MAX)
		return -E2BIG;
	sharing = calloc(1, sizeof(*sharing));
	relays->pairs = calloc(num_pairs + 1, sizeof(*relays->pairs));
	if (sharing)
		sharing->flows = calloc(2 * num_pairs + 1, sizeof(*sharing->flows));
	if (sharing && sharing->flows && relays->pairs) {
		cables_count(plan, sharing);
		ret = pairs_route(plan, sharing, relays);
	}
	if (!ret) {
		flows_fill(sharing, relays);
		cables_share(sharing, num);
		shares_take(sharing);
	} else {
		plan_relays_free(relays);
	}
	if (sharing)
		free(sharing->flows);
	free(sharing);
	return ret;
}

void plan_relays_free(struct plan_relays *relays)
{
	free(relays->pairs);
	memset(relays, 0, sizeof(*relays));
}
