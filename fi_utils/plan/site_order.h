/* SPDX-License-Identifier: Apache-2.0 */
/* site_order.h - an order of ranks in which those of one site follow each other. */
#ifndef MESH_FI_UTILS_PLAN_SITE_ORDER_H
#define MESH_FI_UTILS_PLAN_SITE_ORDER_H

#include "plan/rank_order.h"
#include "plan/topology.h"

/**
 * Finds an order in which the nodes of each site are behind each other, so that a ring crosses
 * between two sites twice. Inside a site it is the best one that rank_order.h finds; where cables
 * join sites, each site is turned so that the order follows them, if it can be.
 *
 * @sites: the site of each node, numbers from 0 to @num_sites - 1, each of which has nodes
 *
 * Returns 0; -ENOMEM. order->proven only says that each rank is cabled to the next. Free @order
 * with mesh_rank_order_free().
 */
int mesh_site_order_find(const struct mesh_topology *topology, const int *sites, int num_sites,
			 struct mesh_rank_order *order);

#endif
