/* SPDX-License-Identifier: Apache-2.0 */
/* self.h - what this process says of itself and its NICs in questions and answers. */
#ifndef MESH_NEIGHBOURS_SELF_H
#define MESH_NEIGHBOURS_SELF_H

#include <stdint.h>

#include "nic/nic.h"
#include "wire/neighbour.h"

/* One of our NICs. */
struct mesh_neighbour_link {
	unsigned int ifindex;
	struct mesh_addr ask_from;   /* IPv6 link-local, or IPv4 where it has none; else NONE */
	struct mesh_neighbour about; /* all but type, token, job and processes */
};

struct mesh_neighbour_self {
	uint64_t node_id;
	char node[MESH_NODE_NAME_MAX];
	char site[MESH_SITE_NAME_MAX]; /* "" where none is set */
	uint64_t job;		       /* mesh_job_key() */
	struct mesh_neighbour_process process;
};

/** Takes over the site's name from the settings, as far as it has room. */
void mesh_neighbour_site_set(struct mesh_neighbour_self *self, const char *setting);

/** A number for each site's name, the same on all nodes; 0 for "". */
uint32_t mesh_neighbour_site_number(const char *site);

/**
 * Describes a NIC.
 *
 * @index: of the NIC in the node's stable order
 * @providers: bit N: enum mesh_provider_id N
 */
void mesh_neighbour_link_describe(const struct mesh_neighbour_self *self,
				  const struct mesh_nic *nic, int index, uint8_t providers,
				  struct mesh_neighbour_link *link);

#endif
