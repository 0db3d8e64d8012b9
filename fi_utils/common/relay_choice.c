/* SPDX-License-Identifier: Apache-2.0 */
/* relay_choice.c - which relays the plugin's connections use in the end. */
#include "common/relay_choice.h"

bool relays_replace(const struct mesh_path_candidate *pairs, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		if (!mesh_path_class_is_routed(pairs[i].class) ||
		    pairs[i].provider == MESH_PROVIDER_VERBS_RXM ||
		    pairs[i].provider == MESH_PROVIDER_NONE)
			return false;
	}
	return num > 0;
}

static bool replaces_tcp(const struct mesh_route *route)
{
	return route->rdma && !route->leaves && !route->drained;
}

int relays_together(struct mesh_route *routes, int num, bool replace)
{
	int i, together = 0;

	for (i = 0; i < num; i++) {
		if (!routes[i].num_relays || (replace && !replaces_tcp(&routes[i])) ||
		    (together && !mesh_route_fits(&routes[0], &routes[i])))
			continue;
		routes[together++] = routes[i];
	}
	return together;
}

int relay_routes_find(const struct mesh_graph *graph, int from, int to, bool replace,
		      struct relay_routes *routes)
{
	struct mesh_route found[MESH_ROUTES_MAX];
	int i, k, num;

	num = mesh_graph_routes(graph, (uint64_t)from + 1, (uint64_t)to + 1, MESH_ROUTE_RELAYS_MAX,
				NULL, 0, found, MESH_ROUTES_MAX);
	*routes = (struct relay_routes){.num = relays_together(found, num, replace)};
	for (i = 0; i < routes->num; i++) {
		routes->num_relays = found[i].num_relays;
		for (k = 0; k < found[i].num_relays; k++)
			routes->relays[i][k] = (int)found[i].hops[k] - 1;
	}
	return num < 0 ? num : 0;
}
