/* SPDX-License-Identifier: Apache-2.0 */
/* make.h - makes a plan: the nodes and cables of the request, the plan, its environment, relays. */
#ifndef MESH_FI_UTILS_PLAN_MAKE_H
#define MESH_FI_UTILS_PLAN_MAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/relay_choice.h"
#include "plan/cable_list.h"
#include "plan/plan.h"

/* ---- the names of nodes and ports ------------------------------------------------------------ */

/* Nodes in the order of the arguments. */
struct plan_nodes {
	struct mesh_plan_node *nodes; /* owned */
	int num_nodes;
};

/**
 * Adds the nodes of one argument: "a", "a,b,c", "spark[1-4]", "node[001-128]".
 *
 * Returns 0; -EINVAL (reported): a bad name, a name twice, too many; -ENOMEM.
 */
int plan_nodes_add(struct plan_nodes *nodes, const char *text);

/** Refuses a name that two nodes have. Returns 0, -EINVAL (reported) or -ENOMEM. */
int plan_nodes_check(const struct plan_nodes *nodes);

/**
 * Adds the nodes of a list of cables, except those that are there already. Returns as
 * plan_nodes_add().
 */
int plan_nodes_add_listed(struct plan_nodes *nodes, const struct mesh_cable_list *list);

/**
 * Names ports: "enp1s0f0,enp1s0f1" for all nodes that have none yet, "a=enp1s0,enp2s0" for one.
 *
 * Returns 0; -EINVAL (reported); -ENOMEM.
 */
int plan_nodes_ports(struct plan_nodes *nodes, const char *text);

/**
 * Names the site of nodes that are there already: "east=a,b" or "west=spark[1-4]".
 *
 * Returns 0; -EINVAL (reported): a bad name, an unknown node, one that has a site; -ENOMEM.
 */
int plan_nodes_site(struct plan_nodes *nodes, const char *text);

void plan_nodes_free(struct plan_nodes *nodes);

/* ---- the cables, assigned to ports ----------------------------------------------------------- */

/**
 * Makes the cables of @request, and names the ports that have no name yet.
 *
 * Returns 0, and @plan->topology is made; -EINVAL; -ENOSPC: a node has too few ports (logged, with
 * the shapes that fit); -ENOMEM.
 */
int mesh_plan_cables_make(struct mesh_plan_request *request, struct mesh_plan *plan);

/* ---- the plan, or why there is none ---------------------------------------------------------- */

/* Bytes. Ethernet: jumbo frames, which every RDMA NIC takes; IPoIB: the 2 KiB of datagram mode. */
#define MESH_PLAN_MTU_ETHERNET 9000
#define MESH_PLAN_MTU_INFINIBAND 2044

/**
 * Makes a plan, or says why there is none: too few ports (and which shapes fit), too few addresses
 * (and which prefix fits), nodes that are not connected.
 *
 * Where no range is given, 192.168.100.0/16 is cut into subnets of /24, or of /30 if these do not
 * last; then 10.0.0.0/8 likewise. IPv6: a /48 that depends on the nodes' names, cut into
 * subnets of /64, or of /127.
 *
 * Returns 0; -EINVAL, -ENOSPC (ports or addresses; all logged), -ENOMEM. @request->nodes are freed
 * in any case. Free @plan with mesh_plan_free().
 */
int mesh_plan_make(struct mesh_plan_request *request, struct mesh_plan *plan);

/* ---- the environment ------------------------------------------------------------------------- */

/*
 * the variables that NCCL needs in a planned mesh, and how well the rank order follows the cables.
 */

/* An environment variable, and why it is needed. */
struct plan_variable {
	const char *name;
	char *value; /* owned */
	const char *why;
};

#define PLAN_VARIABLES_MAX 5

/** The environment for NCCL: as few variables as possible. Returns how many, or -ENOMEM. */
int plan_environment(const struct mesh_plan *plan, struct plan_variable *variables);

void plan_environment_free(struct plan_variable *variables, int num);

/**
 * Writes how well the rank order follows the cables into @text, one or two sentences; returns
 * @text.
 */
const char *plan_order_text(const struct mesh_plan *plan, char *text, size_t size);

/* ---- which pairs need relays, and what the cables leave each pair ---------------------------- */

/* Larger meshes are not computed. */
#define PLAN_RELAYS_NODES_MAX 64

/* Two nodes. */
struct plan_pair {
	int from, to; /* from < to */
	/* Of one without relays if the two have a cable. */
	struct relay_routes routes;
	/*
	 * Bandwidth of each direction in cables, while all pairs send in both directions and share
	 * fairly: 0.5 is half of what one cable carries.
	 */
	double share;
};

struct plan_relays {
	struct plan_pair *pairs; /* owned; all pairs */
	int num_pairs;
	bool all_reached; /* else some pairs need more relays than a route may have */
};

/**
 * Finds the routes as the plugin does, if each node relays, and shares the cables: the bandwidth of
 * all pairs grows alike until a cable is full, then that of the pairs that do not use it, and so
 * on. A pair with several routes sends equal parts over them.
 *
 * Returns 0; -E2BIG for more than PLAN_RELAYS_NODES_MAX nodes, or more neighbours of one node than
 * the plugin uses NICs; -ENOMEM.
 */
int plan_relays_find(const struct mesh_plan *plan, struct plan_relays *relays);

void plan_relays_free(struct plan_relays *relays);

#endif
