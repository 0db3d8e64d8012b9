/* SPDX-License-Identifier: Apache-2.0 */
/* layout_labels.h - labels on their cables, where they hide nothing. */
#ifndef MESH_FI_UTILS_TOPO_LAYOUT_LABELS_H
#define MESH_FI_UTILS_TOPO_LAYOUT_LABELS_H

#include "topo/graph.h"

/* Larger drawings are not searched for label places: there are too many pairs to check. */
#define LAYOUT_LABELLED_EDGES_MAX 600

/**
 * Puts the labels on their cables where they hide nothing.
 *
 * Returns how many have no place.
 */
int layout_labels_place(const struct layout_graph *graph, struct layout *layout);

#endif
