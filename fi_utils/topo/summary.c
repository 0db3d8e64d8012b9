/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - texts that all outputs of a map share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/shape.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/summary.h"

const char *topo_summary(const struct topo_map *map, char *text, size_t size)
{
	char shape[MESH_SHAPE_TEXT_MAX];
	int i, cables = 0, switches = 0, down = 0;
	size_t len;

	for (i = 0; i < map->num_links; i++) {
		cables += map->links[i].num == 2;
		switches += map->links[i].num != 2;
		down += topo_link_state(map, i) == TOPO_DOWN;
	}
	len = (size_t)snprintf(
		text, size, "%s: %d node%s, %d cable%s",
		map->shape.kind == MESH_SHAPE_CABLES ? "mesh" : mesh_shape_text(&map->shape, shape),
		map->num_nodes, map->num_nodes == 1 ? "" : "s", cables, cables == 1 ? "" : "s");
	if (switches && len < size)
		len += (size_t)snprintf(text + len, size - len, ", %d switched subnet%s", switches,
					switches == 1 ? "" : "s");
	if (down && len < size)
		len += (size_t)snprintf(text + len, size - len, ", %d down", down);
	if (map->planned && len < size)
		snprintf(text + len, size - len, ", planned");
	return text;
}

const char *topo_path_text(const struct topo_map *map, const struct topo_path *path, char *text,
			   size_t size)
{
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];

	if (path->local < 0)
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%s %s -> %s %s", map->nics[path->local].name,
			 mesh_addr_text(&map->nics[path->local].addr, local),
			 map->nics[path->remote].name,
			 mesh_addr_text(&map->nics[path->remote].addr, remote));
	return text;
}

const char *topo_pairs_summary(const struct topo_map *map, char *text, size_t size)
{
	long num, i, joined = 0;
	struct topo_path *paths = topo_paths_find(map, TOPO_PATHS_MAX, &num);

	for (i = 0; paths && i < num; i++)
		joined += paths[i].local >= 0;
	if (paths)
		snprintf(text, size,
			 "%ld pairs of nodes: %ld have a path, %ld have none. "
			 "fi_mesh topo --pair A,B shows one.",
			 num, joined, num - joined);
	else
		snprintf(text, size, "%ld pairs of nodes. fi_mesh topo --pair A,B shows one.", num);
	free(paths);
	return text;
}
