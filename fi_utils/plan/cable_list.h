/* SPDX-License-Identifier: Apache-2.0 */
/* cable_list.h - a mesh without a regular shape, as a user writes it: one cable a line. */
#ifndef MESH_FI_UTILS_PLAN_CABLE_LIST_H
#define MESH_FI_UTILS_PLAN_CABLE_LIST_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "nic/addr.h"

/* HOST_NAME_MAX of Linux, and the final zero. */
#define MESH_PLAN_NAME_MAX 65

/* One end: "spark1:enp1s0f0np0=192.168.1.1/24"; port is "" if the line names none. */
struct mesh_listed_end {
	char node[MESH_PLAN_NAME_MAX];
	char port[IF_NAMESIZE];
	struct mesh_addr addr; /* that the port has and keeps; family NONE: the plan chooses it */
};

struct mesh_listed_cable {
	struct mesh_listed_end ends[2];
};

struct mesh_cable_list {
	struct mesh_listed_cable *cables; /* owned */
	int num_cables;
};

/** True for 1 to 64 letters, digits, '.', '-' and '_', beginning with a letter or digit. */
bool mesh_node_name_valid(const char *name);

/**
 * A name that occurs twice among @num structs of @size bytes, each of which begins with its name;
 * NULL: there is none.
 */
const char *mesh_name_repeated(const void *first, size_t size, int num);

/**
 * True for a name that the kernel gives to interfaces and that needs no quotes in any configuration
 * file: 1 to 15 letters, digits, '.', '-', '_' and '@', beginning with a letter or digit.
 */
bool mesh_port_name_valid(const char *name);

/**
 * Reads lines "NODE[:PORT] NODE[:PORT]", or "NODE:PORT=ADDR/N NODE:PORT=ADDR/N" for a cable whose
 * addresses are kept. '#' starts a comment, empty lines are skipped.
 *
 * @text: @size bytes, any of them
 *
 * Returns 0; -EINVAL (logged with the number of the line) or -E2BIG (logged, more than
 * MESH_TOPOLOGY_CABLES_MAX); -ENOMEM. Free @list with mesh_cable_list_free().
 */
int mesh_cable_list_parse(const char *text, size_t size, struct mesh_cable_list *list);

void mesh_cable_list_free(struct mesh_cable_list *list);

#endif
