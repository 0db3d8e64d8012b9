/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - which port of which node a cable joins. Nodes and ports are numbers from 0. */
#ifndef MESH_FI_UTILS_PLAN_TOPOLOGY_H
#define MESH_FI_UTILS_PLAN_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

/* Limits of plans and drawings: nodes as many as a search of the plugin finds (nic/graph.h). */
#define MESH_TOPOLOGY_NODES_MAX 1024
#define MESH_TOPOLOGY_CABLES_MAX 1000000

struct mesh_cable_end {
	int node;
	int port;
};

struct mesh_cable {
	struct mesh_cable_end ends[2];
};

struct mesh_topology {
	int num_nodes;
	struct mesh_cable *cables; /* owned */
	int num_cables;
};

/* The same cables from each node's side: node n's are entries first[n] .. first[n + 1] - 1. */
struct mesh_neighbours {
	int *first;	 /* num_nodes + 1 of them, owned */
	int *nodes;	 /* at the far end, owned */
	int *cables;	 /* index of the cable, owned */
	int num_entries; /* twice the number of cables */
};

/**
 * Starts a topology without cables.
 *
 * Returns 0, or -EINVAL (logged) for less than 1 node or more than MESH_TOPOLOGY_NODES_MAX.
 */
int mesh_topology_init(struct mesh_topology *topology, int num_nodes);

void mesh_topology_free(struct mesh_topology *topology);

/**
 * Adds a cable. The end with the lower node comes first, whatever the order of the arguments.
 *
 * Returns 0; -EINVAL (logged) for an unknown node, or both ends on one node; -E2BIG (logged) for
 * more than MESH_TOPOLOGY_CABLES_MAX; -ENOMEM.
 */
int mesh_topology_add(struct mesh_topology *topology, struct mesh_cable_end a,
		      struct mesh_cable_end b);

/**
 * Renumbers the ports of each node as 0, 1, 2 ... in the order of their old numbers, and equal ones
 * in the order of their cables.
 *
 * Returns 0 or -ENOMEM.
 */
int mesh_topology_number_ports(struct mesh_topology *topology);

/** The largest number of cables at one node. */
int mesh_topology_max_degree(const struct mesh_topology *topology);

/** Fills @neighbours; free them with mesh_neighbours_free(). Returns 0 or -ENOMEM. */
int mesh_neighbours_load(const struct mesh_topology *topology, struct mesh_neighbours *neighbours);

void mesh_neighbours_free(struct mesh_neighbours *neighbours);

/** True if a cable joins the two nodes. */
bool mesh_neighbours_joined(const struct mesh_neighbours *neighbours, int a, int b);

/**
 * Number of connected parts of the mesh without node @without (-1: of the whole mesh).
 *
 * @seen: room for num_nodes numbers, overwritten
 * @queue: the same
 */
int mesh_neighbours_parts(const struct mesh_neighbours *neighbours, int num_nodes, int without,
			  int *seen, int *queue);

#endif
