/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - a mesh to be drawn: nodes, their NICs, and the links between these. */
#ifndef MESH_FI_UTILS_TOPO_MAP_H
#define MESH_FI_UTILS_TOPO_MAP_H

#include <stdbool.h>

#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/provider_id.h"
#include "plan/cable_list.h"
#include "plan/shape.h"

enum topo_state {
	TOPO_PLANNED, /* on paper */
	TOPO_UP,      /* the node reports it as a mesh NIC */
	TOPO_DOWN,    /* the node reports it, and cannot use it */
};

struct topo_nic {
	int node;
	char name[MESH_RDMA_NAME_MAX]; /* netdev */
	struct mesh_addr addr;	       /* family NONE: it has none */
	int rate_mbps;		       /* 0: unknown */
	enum topo_state state;
	enum mesh_provider_id provider; /* NONE: unknown, as in a plan */
	char note[MESH_NIC_REASON_MAX]; /* why it is not used, or "" */
	int link;			/* of the NIC; -1: no other NIC is on its subnet */
};

struct topo_node {
	char name[MESH_PLAN_NAME_MAX];
	int first_nic;
	int num_nics;
};

/* A cable, or a switched subnet with more than two NICs. */
struct topo_link {
	struct mesh_addr subnet;
	int first; /* its NICs are members[first] .. members[first + num - 1] */
	int num;
};

struct topo_map {
	bool planned;
	struct mesh_shape shape; /* of a plan, else MESH_SHAPE_CABLES */
	struct topo_node *nodes; /* owned */
	int num_nodes;
	struct topo_nic *nics; /* owned; those of a node side by side */
	int num_nics;
	struct topo_link *links; /* owned */
	int num_links;
	int *members; /* indices of NICs, owned */
};

/** Adds a node. Returns 0; -EINVAL (reported): bad name, or too many nodes; -ENOMEM. */
int topo_map_node_add(struct topo_map *map, const char *name);

/**
 * Adds a NIC to the node that was added last.
 *
 * @nic: node and link are filled in
 *
 * Returns 0; -E2BIG (reported); -ENOMEM.
 */
int topo_map_nic_add(struct topo_map *map, const struct topo_nic *nic);

/**
 * Joins NICs on the same subnet, after all were added. Link-local addresses join nothing: every
 * link has the same subnet.
 *
 * Returns 0; -EINVAL (reported): two nodes have the same name; -ENOMEM.
 */
int topo_map_join(struct topo_map *map);

void topo_map_free(struct topo_map *map);

/** The node of this name, or -1. */
int topo_map_node_find(const struct topo_map *map, const char *name);

/** The NIC of @node with this name, or -1. */
int topo_map_nic_find(const struct topo_map *map, int node, const char *name);

/** The worst state of the link's NICs. */
enum topo_state topo_link_state(const struct topo_map *map, int link);

/** The slowest rate that is known of the link's NICs, in Mb/s; 0: none is known. */
int topo_link_rate(const struct topo_map *map, int link);

/** "planned", "up", "down". */
const char *topo_state_text(enum topo_state state);

#endif
