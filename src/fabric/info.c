/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - the one place that calls fi_getinfo(). */
#include <stdio.h>
#include <string.h>

#include <net/if.h>

#include "fabric/info.h"
#include "fabric/memory_hooks.h"

int mesh_info_list(const struct mesh_nic *nic, const struct fi_info *hints, uint64_t flags,
		   struct fi_info **list)
{
	char node[MESH_ADDR_TEXT_MAX + IF_NAMESIZE];
	struct mesh_addr bare = nic->source;

	/* libfabric reads its variables at the process's first call. */
	mesh_memory_hooks_prevent();
	bare.scope_id = 0;
	mesh_addr_text(&bare, node);
	if (nic->source.scope_id) {
		strcat(node, "%");
		strcat(node, nic->netdev);
	}
	return fi_getinfo(MESH_FI_VERSION, node, NULL, FI_SOURCE | flags, hints, list);
}
