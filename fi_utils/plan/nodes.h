/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - reads the names of nodes and ports for `fi_mesh plan`. */
#ifndef MESH_FI_UTILS_PLAN_NODES_H
#define MESH_FI_UTILS_PLAN_NODES_H

#include "plan/cable_list.h"
#include "plan/plan.h"

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

#endif
