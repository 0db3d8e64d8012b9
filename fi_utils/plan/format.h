/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - a format of configuration files. */
#ifndef MESH_FI_UTILS_PLAN_FORMAT_H
#define MESH_FI_UTILS_PLAN_FORMAT_H

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

#endif
