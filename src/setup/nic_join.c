/* SPDX-License-Identifier: Apache-2.0 */
/* nic_join.c - NICs that could not be used at init, and can now. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/provider.h"
#include "nic/nic.h"
#include "setup/nic_join.h"
#include "setup/openings.h"
#include "transport/comm_open.h"

/*
 * Sets @found for each dev that is bound to this address: the sockets below it depend on nothing
 * else. Returns the first of them, or -1.
 */
static int devs_find(const struct mesh_process *process, const struct mesh_addr *source,
		     bool *found)
{
	int dev, first = -1;

	for (dev = 0; dev < process->num_devs; dev++) {
		if (!mesh_addr_equal(&process->nics[dev]->source, source))
			continue;
		found[dev] = true;
		if (first < 0)
			first = dev;
	}
	return first;
}

MESH_HOLDS(process)
static void dev_open(struct mesh_process *process, int dev)
{
	char address[MESH_ADDR_TEXT_MAX];
	int ret = mesh_opening_join(process, dev);

	if (!ret)
		return;
	/* It is not offered to peers; the next change of a link or an address tries it again. */
	process->dev_states[dev] = MESH_DEV_FAILED;
	mesh_info("%s cannot join: TCP port %u of %s, which all NICs of this process share: %s",
		  process->nics[dev]->netdev, process->control_port,
		  mesh_addr_text(&process->nics[dev]->source, address), strerror(-ret));
}

static void nic_add(struct mesh_process *process, const struct mesh_nic *nic,
		    enum mesh_provider_id provider)
{
	struct mesh_nic *added = malloc(sizeof(*added));
	int dev = process->num_devs;

	if (!added)
		return;
	*added = *nic;
	mesh_info("NIC %d: %s joins, %s", dev, nic->netdev, nic->reason);
	mesh_process_lock(process);
	process->nics[dev] = added;
	mesh_process_provider_set(process, dev, provider);
	process->dev_states[dev] = MESH_DEV_CLOSED;
	process->controls[dev].watch.fd = -1;
	process->dev_reserves[dev] = false;
	process->num_devs = dev + 1;
	dev_open(process, dev);
	mesh_process_unlock(process);
}

/* Returns false if the NIC is skipped: then the table has another one in its place. */
static bool nic_join(struct mesh_process *process, struct mesh_nic_table *table, int index)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(process->config.provider);
	const struct mesh_nic *nic = &table->nics[index];
	struct mesh_provider_verdict found;

	if (process->num_devs == MESH_NICS_MAX) {
		mesh_nic_leave(&table->nics[index], MESH_NIC_SKIPPED,
			       "it came up when %d NICs were in use: no more can be",
			       MESH_NICS_MAX);
		mesh_nic_table_sort(table);
		return false;
	}
	mesh_provider_rescan(nic);
	if (mesh_provider_assign(wanted, table, index, &found))
		return false;
	if (found.note[0])
		mesh_warn("%s came up late and joins with %s (before 2.2 libfabric lists the RDMA "
			  "devices only when a process starts: one that starts now may use them): "
			  "%s",
			  nic->netdev, mesh_provider_id_text(found.id), found.note);
	nic_add(process, nic, found.id);
	return true;
}

/* What a comm has over a NIC that has become a reserve, or is none any longer, counts anew. */
static void reserves_set(struct mesh_process *process, const bool *taken)
{
	struct mesh_comm *comm;
	bool changed = false;
	int dev;

	mesh_process_lock(process);
	for (dev = 0; dev < process->num_devs; dev++) {
		changed |= process->dev_reserves[dev] == taken[dev];
		process->dev_reserves[dev] = !taken[dev];
	}
	for (comm = changed ? LIST_FIRST(&process->comms) : NULL; comm;
	     comm = LIST_NEXT(comm, entry))
		mesh_comm_tiers_renew(comm);
	mesh_process_unlock(process);
}

void mesh_nics_join(struct mesh_process *process, struct mesh_nic_table *table)
{
	bool taken[MESH_NICS_MAX] = {false};
	int i = 0, dev;

	while (i < table->num_taken) {
		dev = devs_find(process, &table->nics[i].source, taken);
		if (dev < 0 && !nic_join(process, table, i))
			continue;
		if (dev < 0)
			devs_find(process, &table->nics[i].source, taken);
		mesh_process_lock(process);
		if (dev >= 0 && process->dev_states[dev] == MESH_DEV_FAILED)
			dev_open(process, dev);
		mesh_process_unlock(process);
		i++;
	}
	reserves_set(process, taken);
}

void mesh_nics_forget(struct mesh_process *process)
{
	int dev;

	mesh_process_assert_locked(process);
	for (dev = process->num_lasting; dev < process->num_devs; dev++) {
		free((struct mesh_nic *)process->nics[dev]);
		process->nics[dev] = NULL;
	}
	process->num_devs = process->num_lasting;
	for (dev = 0; dev < MESH_NICS_MAX; dev++)
		process->dev_reserves[dev] = dev >= process->num_nics;
}
