/* SPDX-License-Identifier: Apache-2.0 */
/* graph_routes.h - routes through the mesh, from node to node over nodes that relay. Pure. */
#ifndef MESH_NIC_GRAPH_ROUTES_H
#define MESH_NIC_GRAPH_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/graph.h"

#define MESH_ROUTE_RELAYS_MAX 15
#define MESH_ROUTES_MAX 8

struct mesh_route {
	int num_relays; /* 0: the two are neighbours */
	/* The relays in their order, then the target: num_relays + 1 node ids. */
	uint64_t hops[MESH_ROUTE_RELAYS_MAX + 1];
	uint32_t width_mbps; /* of its narrowest hop; if @rdma, of its cables with RDMA */
	bool drained;	     /* it has a hop that a user drains */
	bool leaves;	     /* a relay is in another site than both ends */
	bool rdma;	     /* each hop has a cable with RDMA at both ends */
};

/** True if @route may be a path of one comm beside @first: it is as long, and of the same kind. */
bool mesh_route_fits(const struct mesh_route *first, const struct mesh_route *route);

/**
 * Finds routes from one node to another: those inside the sites of the two first (a node without a
 * site is in any), among them those with RDMA on each hop, then those with the fewest relays, then
 * the widest. A cable between the two goes before all routes with relays. No two of them share a
 * relay, and there are as many of the least length as there can be without that. No route passes a
 * node twice.
 *
 * @from, @to: node ids; both have reported
 * @relays_max: 0 to MESH_ROUTE_RELAYS_MAX
 * @avoided: @num_avoided node ids that no route may pass; one that is unknown has no effect
 * @routes: receives @routes_max of them at most (MESH_ROUTES_MAX or less)
 *
 * Returns their number; -ENOMEM.
 */
int mesh_graph_routes(const struct mesh_graph *graph, uint64_t from, uint64_t to, int relays_max,
		      const uint64_t *avoided, int num_avoided, struct mesh_route *routes,
		      int routes_max);

#endif
