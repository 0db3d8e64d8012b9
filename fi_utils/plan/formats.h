/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - the formats of configuration files. */
#ifndef MESH_FI_UTILS_PLAN_FORMATS_H
#define MESH_FI_UTILS_PLAN_FORMATS_H

#include <stdbool.h>
#include <stdio.h>

#include "plan/plan.h"
#include "plan/ports.h"

/* A kind of configuration files for a node's ports. */
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

/** All formats, ended by NULL. */
extern const struct plan_format *const plan_formats[];

/** The format of this name, or NULL. */
const struct plan_format *plan_format_find(const char *name);

#endif
