/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - texts that all outputs of a map share. */
#ifndef MESH_FI_UTILS_TOPO_SUMMARY_H
#define MESH_FI_UTILS_TOPO_SUMMARY_H

#include <stddef.h>

#include "topo/map.h"
#include "topo/path.h"

/** "ring: 6 nodes, 6 cables, planned". @text: @size bytes, returned. */
const char *topo_summary(const struct topo_map *map, char *text, size_t size);

/** In place of a long list of paths, how many pairs have one. @text: @size bytes, returned. */
const char *topo_pairs_summary(const struct topo_map *map, char *text, size_t size);

/** "enp1s0 10.0.0.1 -> enp2s0 10.0.0.2", or "-" where there is none; @size bytes, returned. */
const char *topo_path_text(const struct topo_map *map, const struct topo_path *path, char *text,
			   size_t size);

#endif
