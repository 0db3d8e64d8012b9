/* SPDX-License-Identifier: Apache-2.0 */
/* layout_grid.h - boxes in rows and columns. */
#ifndef MESH_FI_UTILS_TOPO_LAYOUT_GRID_H
#define MESH_FI_UTILS_TOPO_LAYOUT_GRID_H

#include "topo/graph.h"

/** Puts boxes, dots and tags on a grid. Returns 0 or -ENOMEM. */
int layout_grid_place(const struct layout_graph *graph, struct layout *layout);

#endif
