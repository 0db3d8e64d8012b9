/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the mesh as its nodes describe it: which links each node says that it has. Pure.
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

#endif
