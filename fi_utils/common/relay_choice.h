/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_choice.h - which relays the plugin's connections between two nodes use in the end, and
 * whether they leave the kernels' routes for them. Pure.
 */
#ifndef FI_UTILS_COMMON_RELAY_CHOICE_H
#define FI_UTILS_COMMON_RELAY_CHOICE_H

#include <stdbool.h>

#include "nic/graph.h"
#include "nic/path_choice.h"

/**
 * True if all of these pairs are routed, and known to be without RDMA: connections leave them for
 * relays with RDMA on each hop. False for none.
 */
bool relays_replace(const struct mesh_path_candidate *pairs, int num);

/**
 * Keeps those of mesh_graph_routes() that one comm between nodes without a path of their own uses
 * together, at the beginning of @routes: the first one over relays, and those that fit it. A cable
 * between the two is none: the NICs at its ends share no subnet, or may not be used.
 *
 * @replace: only what connections leave routed tcp for: with RDMA on each hop, inside the site, and
 * without a hop that has failed or is drained
 *
 * Returns their number.
 */
int relays_together(struct mesh_route *routes, int num, bool replace);

/*
 * The best routes of one length, which share no relay: one connection uses them together
 * (nic/graph.h).
 */
struct relay_routes {
	int num;	/* 0: there is none, or none is needed */
	int num_relays; /* of each */
	int relays[MESH_ROUTES_MAX][MESH_ROUTE_RELAYS_MAX]; /* nodes, in the order of each route */
};

/**
 * Finds the routes between two nodes without a path of their own, in a graph where ids are numbers
 * of nodes plus one. Returns 0 or -ENOMEM.
 */
int relay_routes_find(const struct mesh_graph *graph, int from, int to, bool replace,
		      struct relay_routes *routes);

#endif
