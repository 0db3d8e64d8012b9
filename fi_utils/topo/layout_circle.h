/* SPDX-License-Identifier: Apache-2.0 */
/* layout_circle.h - boxes on a circle. */
#ifndef MESH_FI_UTILS_TOPO_LAYOUT_CIRCLE_H
#define MESH_FI_UTILS_TOPO_LAYOUT_CIRCLE_H

#include "topo/graph.h"

/** Puts boxes and dots on a circle. @radius: from its centre to the boxes' centres */
int layout_circle_place(const struct layout_graph *graph, double radius, struct layout *layout);

/** The smallest radius at which no two boxes touch. */
double layout_circle_radius(const struct layout_graph *graph);

#endif
