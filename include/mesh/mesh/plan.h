/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a mesh before it is built: cables, addresses, and the order of ranks. */
#ifndef MESH_MESH_PLAN_H
#define MESH_MESH_PLAN_H

#include <mesh/mesh/cable_list.h>
#include <mesh/mesh/rank_order.h>
#include <mesh/mesh/shape.h>
#include <mesh/mesh/subnet_range.h>

/* Ports of one node, of which a plan may leave some unused. */
#define MESH_PLAN_PORTS_MAX 256

struct mesh_plan_node {
	char name[MESH_NODE_NAME_MAX];
	char (*ports)[IF_NAMESIZE]; /* owned; their names, in the order in which they are used */
	int num_ports;
	bool ports_named; /* by the user; else they are mesh0, mesh1, ... */
};

/* What is asked for. Zero stands for "choose". */
struct mesh_plan_request {
	struct mesh_shape shape;
	int num_nodes;
	struct mesh_plan_node *nodes; /* num_nodes of them; mesh_plan_make() takes them over */
	int num_ports;		      /* of nodes whose ports have no names; 0: as many as needed */
	const struct mesh_cable_list *cables; /* for MESH_SHAPE_CABLES */
	struct mesh_addr range;		      /* family NONE: a private range */
	int prefix_len;			      /* of each cable's subnet */
	bool ipv6;			      /* of the range that is chosen */
	bool infiniband;		      /* IPoIB, else Ethernet */
	int mtu;			      /* bytes */
	int rate_mbps;			      /* of each cable; 0: unknown */
};

struct mesh_plan {
	struct mesh_shape shape;
	struct mesh_topology topology;
	struct mesh_plan_node *nodes; /* owned, topology.num_nodes of them */
	struct mesh_subnets subnets;  /* cable i has subnet i */
	struct mesh_rank_order order;
	bool infiniband;
	bool ports_named; /* every name of a port is the user's */
	int mtu;
	int rate_mbps;
};

/* Bytes. Ethernet: jumbo frames, which every RDMA NIC takes; IPoIB: the 2 KiB of datagram mode. */
#define MESH_PLAN_MTU_ETHERNET 9000
#define MESH_PLAN_MTU_INFINIBAND 2044

/**
 * Makes a plan, or says why there is none: too few ports (and which shapes fit), too few addresses
 * (and which prefix fits), nodes that are not connected.
 *
 * Where no range is given, 192.168.100.0/16 is cut into subnets of /24, or of /30 if these do not
 * last; then 10.0.0.0/8 the same way. IPv6: a /48 that depends on the nodes' names, cut into
 * subnets of /64, or of /127.
 *
 * Returns 0; -EINVAL, -ENOSPC (ports or addresses; all logged), -ENOMEM. @request->nodes are freed
 * in any case. Free @plan with mesh_plan_free().
 */
int mesh_plan_make(struct mesh_plan_request *request, struct mesh_plan *plan);

void mesh_plan_free(struct mesh_plan *plan);

void mesh_plan_nodes_free(struct mesh_plan_node *nodes, int num_nodes);

/** Adds a port to @node. Returns 0; -EINVAL (logged): bad name, twice, too many; -ENOMEM. */
int mesh_plan_port_add(struct mesh_plan_node *node, const char *name);

/** The address of one end (0 or 1) of a cable, with the prefix length. */
struct mesh_addr mesh_plan_addr(const struct mesh_plan *plan, int cable, int end);

/** The name of the node or port at one end (0 or 1) of a cable. */
const char *mesh_plan_node_name(const struct mesh_plan *plan, int cable, int end);
const char *mesh_plan_port_name(const struct mesh_plan *plan, int cable, int end);

/** Number of pairs of nodes that no cable joins; -1 without memory. */
int64_t mesh_plan_pairs_apart(const struct mesh_plan *plan);

#endif
