/* SPDX-License-Identifier: Apache-2.0 */
/* relays.c - the routes between two nodes of a map that share no link, over nodes that relay. */
#include <errno.h>

#include "common/relay_choice.h"
#include "neighbours/datagram.h"
#include "nic/endpoint_addr.h"

#include "topo/relays.h"

/* The plugin has as many NICs at most; further ones are no part of the graph. */
static int nic_index(const struct topo_map *map, int nic)
{
	return nic - map->nodes[map->nics[nic].node].first_nic;
}

/* Adds the links of one NIC, to each other NIC on its wire or subnet. */
static int nic_report(const struct topo_map *map, int nic, struct mesh_graph *graph)
{
	const struct topo_link *link = &map->links[map->nics[nic].link];
	int i, ret = 0;

	for (i = link->first; i < link->first + link->num && ret >= 0; i++) {
		const struct topo_nic *other = &map->nics[map->members[i]];
		const struct mesh_graph_link found = {
			.node_id = (uint64_t)other->node + 1,
			.speed_mbps = (uint32_t)other->rate_mbps,
			.nic = (uint8_t)nic_index(map, nic),
			.peer_nic = (uint8_t)nic_index(map, map->members[i]),
			.rdma = map->nics[nic].provider == MESH_PROVIDER_VERBS_RXM,
		};

		if (other->node == map->nics[nic].node || other->state == TOPO_DOWN ||
		    nic_index(map, map->members[i]) >= MESH_NICS_MAX)
			continue;
		ret = mesh_graph_report(graph, (uint64_t)map->nics[nic].node + 1, true, true,
					&found, 1);
	}
	return ret;
}

int topo_relays_graph(const struct topo_map *map, struct mesh_graph *graph)
{
	int i, ret = 0;

	mesh_graph_init(graph);
	for (i = 0; i < map->num_nodes && ret >= 0; i++) {
		ret = mesh_graph_report(graph, (uint64_t)i + 1, true, false, NULL, 0);
		if (ret >= 0)
			mesh_graph_site_set(graph, ret,
					    mesh_neighbour_site_number(map->nodes[i].site));
	}
	for (i = 0; i < map->num_nics && ret >= 0; i++) {
		if (map->nics[i].link >= 0 && map->nics[i].state != TOPO_DOWN &&
		    nic_index(map, i) < MESH_NICS_MAX)
			ret = nic_report(map, i, graph);
	}
	if (ret < 0)
		mesh_graph_finish(graph);
	return ret < 0 ? ret : 0;
}

void topo_relays_find(const struct mesh_graph *graph, int from, int to, bool before_tcp,
		      struct topo_routes *routes)
{
	struct mesh_route found[MESH_ROUTES_MAX];
	int i, k, num;

	*routes = (struct topo_routes){.num = 0};
	num = mesh_graph_routes(graph, (uint64_t)from + 1, (uint64_t)to + 1, MESH_ROUTE_RELAYS_MAX,
				0, found, MESH_ROUTES_MAX);
	routes->num = relays_together(found, num, before_tcp);
	for (i = 0; i < routes->num; i++) {
		routes->num_relays = found[i].num_relays;
		for (k = 0; k < found[i].num_relays; k++)
			routes->relays[i][k] = (int)found[i].hops[k] - 1;
	}
}

static bool joins(const struct topo_map *map, int link, int a, int b)
{
	const struct topo_link *at = &map->links[link];
	bool has_a = false, has_b = false;
	int i;

	for (i = at->first; i < at->first + at->num; i++) {
		has_a |= map->nics[map->members[i]].node == a;
		has_b |= map->nics[map->members[i]].node == b;
	}
	return has_a && has_b;
}

bool topo_routes_have_link(const struct topo_map *map, const struct topo_routes *routes, int from,
			   int to, int link)
{
	int route, i, node;

	for (route = 0; route < routes->num; route++) {
		node = from;
		for (i = 0; i < routes->num_relays; i++) {
			if (joins(map, link, node, routes->relays[route][i]))
				return true;
			node = routes->relays[route][i];
		}
		if (joins(map, link, node, to))
			return true;
	}
	return false;
}
