/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a map as JSON; docs/fi_mesh-json.md describes it. */
#include <errno.h>
#include <stdlib.h>

#include "common/json.h"
#include "plan/shape.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

/* Of the document. */
#define TOPO_VERSION 1

static json_t *provider_json(enum mesh_provider_id provider)
{
	return provider == MESH_PROVIDER_NONE ? json_null()
					      : json_string(mesh_provider_id_text(provider));
}

static json_t *nics_json(const struct topo_map *map, int node)
{
	const struct topo_node *at = &map->nodes[node];
	json_t *list = json_array();
	int i;

	for (i = at->first_nic; i < at->first_nic + at->num_nics && list; i++) {
		const struct topo_nic *nic = &map->nics[i];
		json_t *provider = provider_json(nic->provider);

		list = output_json_append(
			list, json_pack("{s:o, s:o, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "name",
					output_json_text(nic->name), "address",
					output_json_addr(&nic->addr), "rate_mbps", nic->rate_mbps,
					"state", topo_state_text(nic->state), "provider", provider,
					"tx_bytes_per_s",
					nic->rates_known ? json_real(nic->sends) : json_null(),
					"rx_bytes_per_s",
					nic->rates_known ? json_real(nic->receives) : json_null(),
					"note", output_json_text(nic->note), "link",
					nic->link < 0 ? json_null() : json_integer(nic->link)));
	}
	return list;
}

static json_t *nodes_json(const struct topo_map *map)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < map->num_nodes && list; i++)
		list = output_json_append(list,
					  json_pack("{s:s, s:o, s:o}", "name", map->nodes[i].name,
						    "site", output_json_text(map->nodes[i].site),
						    "nics", nics_json(map, i)));
	return list;
}

static json_t *links_json(const struct topo_map *map)
{
	json_t *list = json_array(), *ends;
	int i, k;

	for (i = 0; i < map->num_links && list; i++) {
		const struct topo_link *link = &map->links[i];

		ends = json_array();
		for (k = link->first; k < link->first + link->num && ends; k++) {
			const struct topo_nic *nic = &map->nics[map->members[k]];

			ends = output_json_append(ends, json_pack("{s:s, s:o}", "node",
								  map->nodes[nic->node].name, "nic",
								  output_json_text(nic->name)));
		}
		list = output_json_append(
			list, json_pack("{s:o, s:s, s:o, s:i, s:s, s:o}", "subnet",
					output_json_addr(&link->subnet), "kind",
					link->num == 2 ? "cable" : "switch", "cable",
					link->num == 2 ? json_integer(link->cable) : json_null(),
					"rate_mbps", topo_link_rate(map, i), "state",
					topo_state_text(topo_link_state(map, i)), "ends", ends));
	}
	return list;
}

static json_t *path_end_json(const struct topo_map *map, int nic)
{
	if (nic < 0)
		return json_null();
	return json_pack("{s:o, s:o}", "nic", output_json_text(map->nics[nic].name), "address",
			 output_json_addr(&map->nics[nic].addr));
}

/* The relays of each route, as names. */
static json_t *via_json(const struct topo_map *map, const struct topo_path *path)
{
	json_t *via = json_array(), *route;
	int i, k;

	for (i = 0; i < path->via.num && via; i++) {
		route = json_array();
		for (k = 0; k < path->via.num_relays && route; k++)
			route = output_json_append(
				route, json_string(map->nodes[path->via.relays[i][k]].name));
		via = output_json_append(via, route);
	}
	return via;
}

/* Why the path was chosen, and its provider. */
static json_t *why_json(const struct topo_path *path)
{
	return path->why ? json_string(mesh_path_reason_word(path->why)) : json_null();
}

static json_t *provider_why_json(const struct topo_path *path)
{
	return path->provider == MESH_PROVIDER_NONE
		       ? json_null()
		       : json_string(provider_reason_word(path->provider_why));
}

/* All pairs, or the one of --pair; null if there are too many. */
static json_t *paths_json(const struct topo_map *map, const struct topo_path *pair)
{
	struct topo_path *paths = NULL;
	json_t *list;
	long i, num = 1;

	if (!pair) {
		paths = topo_paths_find(map, TOPO_PATHS_MAX, &num);
		if (!paths)
			return json_null();
		pair = paths;
	}
	list = json_array();
	for (i = 0; i < num && list; i++)
		list = output_json_append(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:i, s:o, s:b, s:o, s:o, s:o, s:s}", "from",
				  map->nodes[pair[i].from].name, "to", map->nodes[pair[i].to].name,
				  "local", path_end_json(map, pair[i].local), "remote",
				  path_end_json(map, pair[i].remote), "cables", pair[i].num_cables,
				  "via", via_json(map, &pair[i]), "routed", pair[i].routed,
				  "provider", provider_json(pair[i].provider), "provider_reason",
				  provider_why_json(&pair[i]), "why", why_json(&pair[i]), "reason",
				  pair[i].reason));
	free(paths);
	return list;
}

int topo_print_json(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	char shape[MESH_SHAPE_TEXT_MAX];
	json_t *root;

	root = json_pack("{s:i, s:s, s:b, s:o, s:o, s:o}", "topo", TOPO_VERSION, "shape",
			 mesh_shape_text(&map->shape, shape), "planned", map->planned, "nodes",
			 nodes_json(map), "links", links_json(map), "paths", paths_json(map, pair));
	return output_json_print("fi_mesh topo", file, root) ? -EIO : 0;
}
