/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what `fi_mesh plan` makes of its arguments, and what it prints. */
#ifndef MESH_FI_UTILS_PLAN_H
#define MESH_FI_UTILS_PLAN_H

#include <stdio.h>

#include <jansson.h>

#include <mesh/mesh/plan.h>

/* ---- arguments -------------------------------------------------------------------------- */

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

/** Adds the nodes of a list of cables that are not there yet. Returns as plan_nodes_add(). */
int plan_nodes_add_listed(struct plan_nodes *nodes, const struct mesh_cable_list *list);

/**
 * Names ports: "enp1s0f0,enp1s0f1" for all nodes that have none yet, "a=enp1s0,enp2s0" for one.
 *
 * Returns 0; -EINVAL (reported); -ENOMEM.
 */
int plan_nodes_ports(struct plan_nodes *nodes, const char *text);

void plan_nodes_free(struct plan_nodes *nodes);

/* ---- the plan from each node's side ----------------------------------------------------- */

/* One end of a cable. */
struct plan_port {
	int node;
	int port;
	int cable;
	int end; /* 0 or 1 */
};

/* Node n's ports are ports[first[n]] .. ports[first[n + 1] - 1], in their order. */
struct plan_ports {
	struct plan_port *ports; /* owned */
	int *first;		 /* owned */
};

/** Returns 0 or -ENOMEM; free with plan_ports_free(). */
int plan_ports_load(const struct mesh_plan *plan, struct plan_ports *ports);

void plan_ports_free(struct plan_ports *ports);

/* ---- output ----------------------------------------------------------------------------- */

/* A variable of the environment, and why it has to be there. */
struct plan_variable {
	const char *name;
	char *value; /* owned */
	const char *why;
};

#define PLAN_VARIABLES_MAX 3

/** The environment for NCCL: as little as possible. Returns how many, or -ENOMEM. */
int plan_environment(const struct mesh_plan *plan, struct plan_variable *variables);

void plan_environment_free(struct plan_variable *variables, int num);

/** What the rank order is worth, in one or two sentences, into @text; returned. */
const char *plan_order_text(const struct mesh_plan *plan, char *text, size_t size);

/** The plan for people. */
void plan_print(FILE *file, const struct mesh_plan *plan);

/** The plan for programs (docs/fi_mesh-json.md); NULL without memory. */
json_t *plan_json(const struct mesh_plan *plan);

/* One way to configure a node's ports. */
struct plan_format {
	const char *name;  /* "netplan" */
	const char *title; /* for people */
	const char *path;  /* of the file on the node; %s is the port, if each has a file */
	bool each_port;
	unsigned int mode; /* permissions of the file */
	/* Writes the ports of one node (or one port of it). */
	void (*write)(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
		      int num_ports);
};

extern const struct plan_format plan_format_netplan, plan_format_nm, plan_format_networkd,
	plan_format_ip;

/** All formats, ended by NULL. */
extern const struct plan_format *const plan_formats[];

/** The format of this name, or NULL. */
const struct plan_format *plan_format_find(const char *name);

/** The name of the port; and what it is for: "cable 3, to b mesh1". @text: @size bytes; returned */
const char *plan_port_name(const struct mesh_plan *plan, const struct plan_port *port);
const char *plan_port_purpose(const struct mesh_plan *plan, const struct plan_port *port,
			      char *text, size_t size);

/** Prints the files of one node, each behind a comment with its path. */
void plan_files_print(FILE *file, const struct mesh_plan *plan, const struct plan_ports *ports,
		      const struct plan_format *format, int node);

/**
 * Writes plan.json and NODE/FORMAT/PATH into @folder, which is made if it is not there and must be
 * empty if it is. After an error or a Ctrl-C it is gone again.
 *
 * @format: NULL for all
 *
 * Returns 0 or a negative errno (reported).
 */
int plan_files_write(const char *folder, const struct mesh_plan *plan,
		     const struct plan_ports *ports, const struct plan_format *format);

#endif
