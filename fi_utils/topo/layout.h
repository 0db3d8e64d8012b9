/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - places boxes, cables and labels of a drawing. */
#ifndef MESH_FI_UTILS_TOPO_LAYOUT_H
#define MESH_FI_UTILS_TOPO_LAYOUT_H

#include "topo/graph.h"

/** Places everything. Returns 0 or -ENOMEM; free @layout with layout_free(). */
int layout_make(const struct layout_graph *graph, struct layout *layout);

void layout_free(struct layout *layout);

#endif
