/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - prints a map: for a terminal, for programs, for Graphviz, as a picture. */
#ifndef MESH_FI_UTILS_TOPO_PRINT_H
#define MESH_FI_UTILS_TOPO_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "topo/map.h"
#include "topo/path.h"

/**
 * Prints @map on @file; @pair, if not NULL, is a path to point out, and the only one listed.
 *
 * Returns 0; -ENOMEM; another negative errno (reported).
 */
int topo_print_text(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_json(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_dot(FILE *file, const struct topo_map *map, const struct topo_path *pair);
int topo_print_svg(FILE *file, const struct topo_map *map, const struct topo_path *pair);

/* ---- texts that several of them share ----------------------------------------------------- */

/** "ring: 6 nodes, 6 cables, planned". @text: @size bytes, returned. */
const char *topo_summary(const struct topo_map *map, char *text, size_t size);

/** In place of a long list of paths, how many pairs have one. @text: @size bytes, returned. */
const char *topo_pairs_summary(const struct topo_map *map, char *text, size_t size);

/** "enp1s0 10.0.0.1 -> enp2s0 10.0.0.2", or "-" where there is none; @size bytes, returned. */
const char *topo_path_text(const struct topo_map *map, const struct topo_path *path, char *text,
			   size_t size);

#endif
