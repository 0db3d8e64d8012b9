/* SPDX-License-Identifier: Apache-2.0 */
/* svg.h - a map as a picture. */
#ifndef MESH_FI_UTILS_TOPO_SVG_H
#define MESH_FI_UTILS_TOPO_SVG_H

#include <stdio.h>

#include "topo/map.h"
#include "topo/path.h"

/**
 * Prints @map on @file; @pair, if not NULL, is a path to point out, and the only one listed.
 *
 * Returns 0; -ENOMEM; another negative errno (reported).
 */
int topo_print_svg(FILE *file, const struct topo_map *map, const struct topo_path *pair);

#endif
