/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the mesh as its nodes describe it: which links each node says that it has; and the
 * routes through it. Pure.
 *
 * A node may lie, so a link counts only if the nodes at both of its ends have reported it, with
 * the same NICs. Who hears a question can answer for both and invent a link: the first connection
 * over it shows that.
 */
#ifndef MESH_NIC_GRAPH_H
#define MESH_NIC_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

/* Nodes, and links of one node; more are not entered. */
#define MESH_GRAPH_NODES_MAX 1024
#define MESH_GRAPH_LINKS_MAX 128

/* A link as the node at one of its ends reports it. */
struct mesh_graph_link {
	uint64_t node_id;      /* of the node at the other end */
	uint32_t speed_mbps;   /* 0: unknown */
	uint8_t nic, peer_nic; /* indices in the stable order of the NICs of either node */
	bool rdma;	       /* @nic has it; the other end reports about @peer_nic */
	bool drained;	       /* a user drains the reporting node's NIC */
};

/* Without links until it has reported. */
struct mesh_graph_node {
	uint64_t id;
	uint32_t site;		       /* any number for each site; 0: not known */
	bool relays;		       /* it would forward for us */
	struct mesh_graph_link *links; /* owned, num_links, ordered by node_id */
	int num_links;
};

/* Zeros: empty. */
struct mesh_graph {
	struct mesh_graph_node *nodes; /* owned */
	int num_nodes;
	uint16_t places[2 * MESH_GRAPH_NODES_MAX]; /* by id: index of a node + 1, or 0 */
};

/** Frees its memory, and empties it. */
void mesh_graph_finish(struct mesh_graph *graph);

/** Enters a node, if it is not there. Returns its index; -ENOMEM; -ENOSPC if the graph is full. */
int mesh_graph_enter(struct mesh_graph *graph, uint64_t id);

/**
 * Enters what the node @id has reported.
 *
 * @add: to what it has reported before; else in place of that
 *
 * @links: links to itself, and those after MESH_GRAPH_LINKS_MAX, are left out
 *
 * Returns the node's index; -ENOMEM; -ENOSPC if the graph is full.
 */
int mesh_graph_report(struct mesh_graph *graph, uint64_t id, bool relays, bool add,
		      const struct mesh_graph_link *links, int num_links);

/** The index of a node, or -1. */
int mesh_graph_find(const struct mesh_graph *graph, uint64_t id);

/** The first link of @node to the node @id; num_links if there is none. Others follow it. */
int mesh_graph_link_find(const struct mesh_graph_node *node, uint64_t id);

/** What @other has reported of the link that the node @id says they have; NULL: nothing. */
const struct mesh_graph_link *mesh_graph_is_confirmed(const struct mesh_graph_node *other,
						      uint64_t id,
						      const struct mesh_graph_link *link);

/* The cables between two nodes. */
struct mesh_graph_hop {
	/* What they carry together, in Mb/s; 0: there is no link that both nodes have reported. */
	uint32_t mbps;
	uint32_t rdma_mbps; /* the same of those with RDMA at both ends */
	bool drained;	    /* all of them; else drained ones do not count */
};

/**
 * The hop between two nodes. An unknown speed counts as 1. Each NIC is counted once: two NICs of
 * each node on one wire are four links, and two cables' worth.
 *
 * @a, @b: indices
 */
struct mesh_graph_hop mesh_graph_hop(const struct mesh_graph *graph, int a, int b);

/* ---- routes, from node to node over nodes that relay --------------------------------------- */

#define MESH_ROUTE_RELAYS_MAX 15
#define MESH_ROUTES_MAX 8

struct mesh_route {
	int num_relays; /* 0: the two are neighbours */
	/* The relays in their order, then the target: num_relays + 1 node ids. */
	uint64_t hops[MESH_ROUTE_RELAYS_MAX + 1];
	uint32_t width_mbps; /* of its narrowest hop; if @rdma, of its cables with RDMA */
	bool drained;	     /* has a hop whose cables are all drained */
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
