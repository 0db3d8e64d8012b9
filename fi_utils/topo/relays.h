/* SPDX-License-Identifier: Apache-2.0 */
/* relays.h - the routes between two nodes of a map that share no link, over nodes that relay. */
#ifndef MESH_FI_UTILS_TOPO_RELAYS_H
#define MESH_FI_UTILS_TOPO_RELAYS_H

#include "nic/graph.h"
#include "nic/graph_routes.h"
#include "topo/map.h"

/* Of a larger mesh only single pairs are looked at. */
#define TOPO_RELAYS_NODES_MAX 64

/*
 * The best routes of one length, which share no relay: one connection uses them together
 * (nic/graph_routes.h).
 */
struct topo_routes {
	int num;	/* 0: there is none, or none is needed */
	int num_relays; /* of each */
	int relays[MESH_ROUTES_MAX][MESH_ROUTE_RELAYS_MAX]; /* nodes, in the order of each route */
};

/**
 * Makes the graph of the links that are not down, as the plugin's own search does. Ids are the
 * nodes' numbers plus one.
 *
 * Returns 0, then mesh_graph_finish() it; -ENOSPC for too many nodes; -ENOMEM.
 */
int topo_relays_graph(const struct topo_map *map, struct mesh_graph *graph);

/**
 * Finds the routes between two nodes without a path of their own.
 *
 * @before_tcp: only those that go before routed tcp, which is the path of the two
 */
void topo_relays_find(const struct mesh_graph *graph, int from, int to, bool before_tcp,
		      struct topo_routes *routes);

/** True if the link joins two nodes that follow each other on one of the routes. */
bool topo_routes_have_link(const struct topo_map *map, const struct topo_routes *routes, int from,
			   int to, int link);

#endif
