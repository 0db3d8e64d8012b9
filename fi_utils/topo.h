/* SPDX-License-Identifier: Apache-2.0 */
/* topo.h - the ways in which `fi_mesh topo` shows a map. */
#ifndef MESH_FI_UTILS_TOPO_H
#define MESH_FI_UTILS_TOPO_H

#include <stdio.h>

#include "topo_map.h"
#include "topo_path.h"

/* Paths of all pairs are listed up to so many: 128 nodes have 8,128. */
#define TOPO_PATHS_MAX 8128

/*
 * Each prints @map on @file; @pair, if not NULL, is a path to point out, and the only one listed.
 * Returns 0; -ENOMEM; another negative errno (reported).
 */
int topo_print_text(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_dot(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_json(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_svg(FILE *file, const struct topo_map *map, const struct topo_path *pair);

/** "ring: 6 nodes, 6 cables, planned". @text: @size bytes, returned. */
const char *topo_summary(const struct topo_map *map, char *text, size_t size);

/** "enp1s0 10.0.0.1 -> enp2s0 10.0.0.2", or "-" where there is none; @size bytes, returned. */
const char *topo_path_text(const struct topo_map *map, const struct topo_path *path, char *text,
			   size_t size);

#endif
