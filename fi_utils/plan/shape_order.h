/* SPDX-License-Identifier: Apache-2.0 */
/* shape_order.h - an order of ranks along the cables of a regular shape. */
#ifndef MESH_FI_UTILS_PLAN_SHAPE_ORDER_H
#define MESH_FI_UTILS_PLAN_SHAPE_ORDER_H

#include "plan/shape.h"

/**
 * An order of the nodes in which each is cabled to the next, and the last to the first where the
 * shape has such a ring at all.
 *
 * @order: num_nodes numbers
 *
 * Returns 0; -EINVAL for MESH_SHAPE_CABLES, whose order must be searched (rank_order.h); -ENOMEM.
 */
int mesh_shape_order(const struct mesh_shape *shape, int num_nodes, int *order);

#endif
