/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - the path that the plugin takes between two nodes of a map, and why. */
#ifndef MESH_FI_UTILS_TOPO_PATH_H
#define MESH_FI_UTILS_TOPO_PATH_H

#include "topo/map.h"

/* Paths of all pairs are listed up to so many: 128 nodes have 8,128. */
#define TOPO_PATHS_MAX 8128
#define TOPO_REASON_MAX 200

struct topo_path {
	int from, to;	   /* nodes */
	int local, remote; /* NICs; -1: there is no path */
	int num_cables;	   /* that join the two directly */
	char reason[TOPO_REASON_MAX];
};

/**
 * Asks the plugin's own choice (src/nic/path_choice.h) without NCCL's hints, which only choose
 * between equal candidates. NICs that are down are skipped, as in the plugin.
 */
void topo_path_find(const struct topo_map *map, int from, int to, struct topo_path *path);

/**
 * Finds the paths of all pairs, each once (from < to), in their order.
 *
 * Returns them, to be freed, and their number in *@num; NULL without memory, or if there are more
 * than @max pairs (*@num has the number then, too).
 */
struct topo_path *topo_paths_find(const struct topo_map *map, long max, long *num);

#endif
