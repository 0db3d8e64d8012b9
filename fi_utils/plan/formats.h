/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - the formats of configuration files, and the files of a plan. */
#ifndef MESH_FI_UTILS_PLAN_FORMATS_H
#define MESH_FI_UTILS_PLAN_FORMATS_H

#include <stddef.h>
#include <stdio.h>

#include "plan/plan.h"

/* ---- the formats of configuration files ------------------------------------------------------ */

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

/** The name of the port; and what it is for: "cable 3, to b mesh1". @text: @size bytes; returned */
const char *plan_port_name(const struct mesh_plan *plan, const struct plan_port *port);
const char *plan_port_purpose(const struct mesh_plan *plan, const struct plan_port *port,
			      char *text, size_t size);

/* A kind of configuration files for a node's ports. */
struct plan_format {
	const char *name;  /* "netplan" */
	const char *title; /* for people */
	const char *path;  /* of the file on the node; %s is the port, if each has a file */
	unsigned int mode; /* permissions of the file */
	/* Writes the ports of one node (or one port of it). */
	void (*write)(FILE *file, const struct mesh_plan *plan, const struct plan_port *ports,
		      int num_ports);
};

/** All formats, ended by NULL. */
extern const struct plan_format *const plan_formats[];

/** The format of this name, or NULL. */
const struct plan_format *plan_format_find(const char *name);

/* ---- the configuration files of a plan, printed or written into a folder --------------------- */

/** Prints the files of one node, each after a comment with its path. */
void plan_files_print(FILE *file, const struct mesh_plan *plan, const struct plan_ports *ports,
		      const struct plan_format *format, int node);

/**
 * Writes plan.json and NODE/FORMAT/PATH into @folder, which must be empty or not exist. After an
 * error or Ctrl-C it is removed again.
 *
 * @format: NULL for all
 *
 * Returns 0 or a negative errno (reported).
 */
int plan_files_write(const char *folder, const struct mesh_plan *plan,
		     const struct plan_ports *ports, const struct plan_format *format);

#endif
