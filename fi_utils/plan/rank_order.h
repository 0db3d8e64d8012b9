/* SPDX-License-Identifier: Apache-2.0 */
/* rank_order.h - finds an order of ranks in which each is cabled to the next. */
#ifndef MESH_FI_UTILS_PLAN_RANK_ORDER_H
#define MESH_FI_UTILS_PLAN_RANK_ORDER_H

#include <stdbool.h>

#include "plan/topology.h"

enum mesh_rank_order_kind {
	MESH_ORDER_RING, /* each rank is cabled to the next, and the last to the first */
	MESH_ORDER_LINE, /* each rank is cabled to the next; last and first are not */
	MESH_ORDER_GAPS, /* some ranks are not cabled to the next */
};

struct mesh_rank_order {
	enum mesh_rank_order_kind kind;
	int *nodes;   /* nodes[rank], owned */
	int num_gaps; /* ranks without a cable to the next one; the last rank does not count */
	/* Nothing better exists: not "nothing better was found in the time given". */
	bool proven;
};

/**
 * Finds the best order: a ring, else a line, else one with few gaps.
 *
 * Finding a ring is hard in general. The search ends after a bounded number of steps (some tenths
 * of a second); the result reports whether it was complete.
 *
 * @hint: an order that is likely to be a ring or line (mesh_shape_order()), or NULL
 *
 * Returns 0; -ENOMEM. Free @order with mesh_rank_order_free().
 */
int mesh_rank_order_find(const struct mesh_topology *topology, const int *hint,
			 struct mesh_rank_order *order);

void mesh_rank_order_free(struct mesh_rank_order *order);

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
