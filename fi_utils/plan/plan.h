/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a mesh before it is built: cables, subnets, addresses, and the order of ranks. */
#ifndef MESH_FI_UTILS_PLAN_PLAN_H
#define MESH_FI_UTILS_PLAN_PLAN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "plan/cable_list.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"
#include "wire/protocol.h"

/*
 * Subnets of prefix_len, one behind the other. The address of @first says where they start, its
 * prefix length how far they may go: 192.168.100.0/16 ends at 192.168.255.255.
 */
struct mesh_subnets {
	struct mesh_addr first;
	uint8_t prefix_len; /* at least 1 */
};

/**
 * Checks a range: the subnets must be smaller than the range and have room for two nodes, the first
 * address must be the start of such a subnet, and the range must be for hosts (no loopback,
 * link-local or multicast addresses).
 *
 * Returns 0, or -EINVAL (logged).
 */
int mesh_subnets_check(const struct mesh_subnets *subnets);

/** How many subnets there are; UINT64_MAX: that many or more. */
uint64_t mesh_subnets_count(const struct mesh_subnets *subnets);

/** Subnet @index, which must be below the count. */
struct mesh_addr mesh_subnets_get(const struct mesh_subnets *subnets, uint64_t index);

/**
 * The address of node @host (0 or 1) in @subnet, with the prefix length: the second and third
 * address, since the first one names the subnet; in a /31 or /127 the only two (RFC 3021, 6164).
 */
struct mesh_addr mesh_subnet_host(const struct mesh_addr *subnet, int host);

/**
 * A unique local IPv6 range of /48 (RFC 4193) that depends on @seed only, so that the same plan
 * gives the same addresses. @seed: any text, such as the names of the nodes
 */
struct mesh_addr mesh_subnet_ula(const char *seed);

/* Ports of one node, of which a plan may leave some unused. */
#define MESH_PLAN_PORTS_MAX 256

struct mesh_plan_node {
	char name[MESH_PLAN_NAME_MAX];
	char (*ports)[IF_NAMESIZE]; /* owned; their names, in the order in which they are used */
	int num_ports;
	bool ports_named;	       /* by the user; else they are mesh0, mesh1, ... */
	char site[MESH_SITE_NAME_MAX]; /* its data centre; "" where none is named */
};

/* The request. Zero stands for "choose". */
struct mesh_plan_request {
	struct mesh_shape shape;
	int num_nodes;
	struct mesh_plan_node *nodes; /* num_nodes of them; mesh_plan_make() takes ownership */
	int num_ports;		      /* of nodes whose ports have no names; 0: as many as needed */
	const struct mesh_cable_list *cables; /* for MESH_SHAPE_CABLES */
	struct mesh_addr range;		      /* family NONE: a private range */
	int prefix_len;			      /* of each cable's subnet */
	bool ipv6;			      /* of the range that is chosen */
	bool infiniband;		      /* IPoIB, else Ethernet */
	int mtu;			      /* bytes */
	int rate_mbps;			      /* of each cable; 0: unknown */
	int halves;		/* NICs that each port appears as; 0: 1. With MESH_SHAPE_CABLES 1 */
	const char *management; /* NIC of the network of all nodes; NULL: unknown */
};

struct mesh_plan {
	struct mesh_shape shape;
	struct mesh_topology topology;
	struct mesh_plan_node *nodes; /* owned, topology.num_nodes of them */
	struct mesh_subnets subnets;  /* cable i has subnet i, unless @addresses is set */
	/* Owned; the addresses of each cable's ends if the list of cables keeps some, else NULL. */
	struct mesh_addr (*addresses)[2];
	struct mesh_rank_order order;
	int *sites;    /* owned; the site of each node: the number of its name, from 0 */
	int num_sites; /* 1 if no sites are named; nodes without a site are one, too */
	/* So many entries of the topology behind each other are one cable, and a subnet each. */
	int halves;
	bool infiniband;
	bool ports_named; /* the user has named every port */
	int mtu;
	int rate_mbps;
	char management[IF_NAMESIZE]; /* the NIC of the network of all nodes; "" if unknown */
};

void mesh_plan_free(struct mesh_plan *plan);

void mesh_plan_nodes_free(struct mesh_plan_node *nodes, int num_nodes);

/** Adds a port to @node. Returns 0; -EINVAL (logged): bad name, twice, too many; -ENOMEM. */
int mesh_plan_port_add(struct mesh_plan_node *node, const char *name);

/** The address of one end (0 or 1) of a cable, with the prefix length. */
struct mesh_addr mesh_plan_addr(const struct mesh_plan *plan, int cable, int end);

/** The subnet of a cable. */
struct mesh_addr mesh_plan_subnet(const struct mesh_plan *plan, int cable);

/** The name of the node or port at one end (0 or 1) of a cable. */
const char *mesh_plan_node_name(const struct mesh_plan *plan, int cable, int end);
const char *mesh_plan_port_name(const struct mesh_plan *plan, int cable, int end);

/* Bytes of mesh_plan_cable_text(). */
#define MESH_PLAN_CABLE_TEXT_MAX 24

/** The number of a cable that users see, from 1: "3", or "3.2" for its second half. */
const char *mesh_plan_cable_text(const struct mesh_plan *plan, int cable, char *text);

/** How often a ring through all ranks crosses from one site to another. */
int mesh_plan_site_crossings(const struct mesh_plan *plan);

/** Number of pairs of nodes that no cable joins; -1 without memory. */
int64_t mesh_plan_pairs_apart(const struct mesh_plan *plan);

#endif
