/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - texts that all outputs of a map share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"
#include "plan/shape.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

const char *topo_summary(const struct topo_map *map, char *text, size_t size)
{
	struct topo_cables cables = topo_map_cables(map);
	char shape[MESH_SHAPE_TEXT_MAX];
	int i, switches = 0, down = 0;

	for (i = 0; i < map->num_links; i++) {
		switches += map->links[i].num != 2;
		down += topo_link_state(map, i) == TOPO_DOWN;
	}
	snprintf(text, size, "%s: %d node%s, %d cable%s",
		 map->shape.kind == MESH_SHAPE_CABLES ? "mesh"
						      : mesh_shape_text(&map->shape, shape),
		 map->num_nodes, map->num_nodes == 1 ? "" : "s", cables.num,
		 cables.num == 1 ? "" : "s");
	if (cables.each > 1)
		output_add(text, size, " of %d halves each", cables.each);
	else if (cables.halves > cables.num)
		output_add(text, size, " (%d halves)", cables.halves);
	if (switches)
		output_add(text, size, ", %d switched subnet%s", switches,
			   switches == 1 ? "" : "s");
	if (down)
		output_add(text, size, ", %d down", down);
	if (map->planned)
		output_add(text, size, ", planned");
	return text;
}

/* "via b,c and d,e": the relays of each route. */
static void via_text(const struct topo_map *map, const struct topo_path *path, char *text,
		     size_t size)
{
	int route, i;

	*text = '\0';
	for (route = 0; route < path->via.num; route++) {
		for (i = 0; i < path->via.num_relays; i++)
			output_add(text, size, "%s%s",
				   i	   ? ","
				   : route ? " and "
					   : "via ",
				   map->nodes[path->via.relays[route][i]].name);
	}
}

const char *topo_path_text(const struct topo_map *map, const struct topo_path *path, char *text,
			   size_t size)
{
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];

	if (!topo_path_exists(path))
		snprintf(text, size, "-");
	else if (path->local < 0)
		via_text(map, path, text, size);
	else
		snprintf(text, size, "%s %s -> %s %s", map->nics[path->local].name,
			 mesh_addr_text(&map->nics[path->local].addr, local),
			 map->nics[path->remote].name,
			 mesh_addr_text(&map->nics[path->remote].addr, remote));
	return text;
}

const char *topo_pairs_summary(const struct topo_map *map, char *text, size_t size)
{
	long num, i, joined = 0, relayed = 0;
	struct topo_path *paths = topo_paths_find(map, TOPO_PATHS_MAX, &num);

	for (i = 0; paths && i < num; i++) {
		joined += topo_path_exists(&paths[i]);
		relayed += paths[i].via.num > 0;
	}
	if (paths && relayed)
		snprintf(text, size,
			 "%ld pairs of nodes: %ld have a link, %ld need relays, %ld have no path. "
			 "fi_mesh topo --pair A,B shows one.",
			 num, joined - relayed, relayed, num - joined);
	else if (paths)
		snprintf(text, size,
			 "%ld pairs of nodes: %ld have a path, %ld have none. "
			 "fi_mesh topo --pair A,B shows one.",
			 num, joined, num - joined);
	else
		snprintf(text, size, "%ld pairs of nodes. fi_mesh topo --pair A,B shows one.", num);
	free(paths);
	return text;
}
