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
	return route->rdma && !route->leaves && !route->doubtful;
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
