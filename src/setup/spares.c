/* SPDX-License-Identifier: Apache-2.0 */
/* spares.c - NICs that carry data only between nodes that no other NICs connect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/provider.h"
#include "setup/spares.h"

static bool management_allowed(const struct mesh_process *process)
{
	return !strcmp(process->config.routed, "management");
}

static void spare_add(struct mesh_process *process, const struct mesh_nic *spare)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(process->config.provider);
	struct mesh_nic *nic = malloc(sizeof(*nic));
	struct mesh_nic_table alone = {.nics = nic, .num_nics = 1, .num_taken = 1};
	struct mesh_provider_verdict verdict;
	int dev = process->num_devs;

	if (!nic)
		return;
	*nic = *spare;
	nic->source = spare->spare_source;
	if (mesh_provider_assign(wanted, &alone, 0, &verdict)) {
		mesh_info("%s cannot stand in for other NICs: %s", nic->netdev, verdict.note);
		free(nic);
		return;
	}
	mesh_info("NIC %d: %s, %s, for nodes that nothing else connects", dev, nic->netdev,
		  nic->verdict == MESH_NIC_SPARE ? "of the management network" : "without RDMA");
	process->nics[dev] = nic;
	mesh_process_provider_set(process, dev, verdict.id);
	process->dev_reserves[dev] = true;
	process->num_devs = dev + 1;
}

void mesh_spares_add(struct mesh_process *process)
{
	const struct mesh_nic_table *table = &process->table;
	int i;

	for (i = 0; i < table->num_nics && process->num_devs < MESH_NICS_MAX; i++)
		if (table->nics[i].verdict == MESH_NIC_SPARE_NO_RDMA ||
		    (table->nics[i].verdict == MESH_NIC_SPARE && management_allowed(process)))
			spare_add(process, &table->nics[i]);
}

const char *mesh_spares_hint(const struct mesh_process *process, const struct mesh_nic_table *table,
			     char *text, size_t size)
{
	int i, used = 0;

	*text = '\0';
	for (i = 0; !management_allowed(process) && i < table->num_nics; i++) {
		if (table->nics[i].verdict != MESH_NIC_SPARE || used < 0 || (size_t)used >= size)
			continue;
		used += snprintf(text + used, size - (size_t)used, "%s%s",
				 used ? ", "
				      : " NCCL_MESH_ROUTED=management on all nodes sends such data "
					"over the management network: ",
				 table->nics[i].netdev);
	}
	return text;
}
