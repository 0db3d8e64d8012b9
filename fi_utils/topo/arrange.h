/* SPDX-License-Identifier: Apache-2.0 */
/* arrange.h - chooses circle or grid, and the places of the vertices. */
#ifndef MESH_FI_UTILS_TOPO_ARRANGE_H
#define MESH_FI_UTILS_TOPO_ARRANGE_H

#include "topo/graph.h"
#include "topo/map.h"

/**
 * Sets row and column of the vertices, or the order around a circle.
 *
 * @graph: edges are set; grid and order are filled in
 * @vertices: those of @graph
 * @order: graph->order; owned by the caller, also on failure (NULL then)
 *
 * Returns 0 or a negative errno.
 */
int topo_arrange(const struct topo_map *map, struct layout_graph *graph,
		 struct layout_vertex *vertices, int **order);

#endif
