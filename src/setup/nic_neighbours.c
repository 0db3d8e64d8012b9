/* SPDX-License-Identifier: Apache-2.0 */
/* nic_neighbours.c - the questions and answers of this process's NICs. */
#include <string.h>

#include "base/clock.h"
#include "neighbours/neighbours.h"
#include "nic/nic.h"
#include "setup/nic_neighbours.h"
#include "setup/setup.h"
#include "system/this_process.h"

MESH_HOLDS(process)
static void self_fill(struct mesh_process *process, struct mesh_neighbour_self *self)
{
	const struct mesh_setup *setup = mesh_setup_of(process);

	memset(self, 0, sizeof(*self));
	self->node_id = process->node_id;
	memcpy(self->node, process->name, sizeof(self->node));
	mesh_neighbour_site_set(self, process->config.site);
	self->job = setup->job;
	self->process = (struct mesh_neighbour_process){
		.process_id = process->process_id,
		.job = self->job,
		.control_port = process->control_port,
		.protocol = MESH_PROTOCOL_VERSION,
		.role = process->role == MESH_PROCESS_RANK ? MESH_NEIGHBOUR_RANK
							   : MESH_NEIGHBOUR_SERVICE,
	};
	if (process->role == MESH_PROCESS_GUEST || process->role == MESH_PROCESS_PROBE)
		self->process.job = self->process.control_port = 0; /* it relays for none */
	if (process->role == MESH_PROCESS_RANK && setup->rank.size)
		self->process.rank = setup->rank.rank + 1;
	if (strcmp(process->config.relay, "any") != 0)
		return;
	self->job = 0; /* processes of all jobs may relay for this one */
	if (process->role == MESH_PROCESS_SERVICE)
		self->process.job = 0;
}

/* What was read of a NIC that is in use; NULL if it cannot be used now. */
static const struct mesh_nic *nic_now(const struct mesh_nic *nic,
				      const struct mesh_nic_table *table,
				      const struct mesh_nic *present, int num_present)
{
	const struct mesh_nic *found;

	if (nic->kind == MESH_NIC_LOOPBACK)
		return NULL; /* it has no other end */
	if (present) {
		found = mesh_nic_find(present, num_present, nic->ifindex);
		if (!found || !mesh_nic_is_usable(found))
			return NULL;
	}
	found = mesh_nic_find(table->nics, table->num_nics, nic->ifindex);
	return found ? found : nic;
}

/* A NIC whose address has changed is more than one device: the first one counts. */
static bool is_listed(const struct mesh_neighbour_link *links, int num_links, unsigned int ifindex)
{
	int i;

	for (i = 0; i < num_links; i++) {
		if (links[i].ifindex == ifindex)
			return true;
	}
	return false;
}

/*
 * The NICs whose link is down. @table judges those that this process has as it did when they could
 * be used; the present state shows these.
 */
static int down_list(const struct mesh_nic_table *table, const struct mesh_nic *present,
		     int num_present, const struct mesh_nic **down)
{
	const struct mesh_nic *nic, *now;
	int i, num = 0;

	for (i = 0; i < table->num_nics && num < MESH_NICS_MAX; i++) {
		nic = &table->nics[i];
		now = present ? mesh_nic_find(present, num_present, nic->ifindex) : NULL;
		if (nic->verdict == MESH_NIC_LINK_DOWN ||
		    (mesh_nic_is_taken(nic) && nic->kind != MESH_NIC_LOOPBACK && now &&
		     !mesh_nic_has_carrier(now)))
			down[num++] = nic;
	}
	return num;
}

/* A bit for each. */
static uint8_t providers_of(const struct mesh_process *process, int dev)
{
	return (uint8_t)(1u << process->providers[dev] |
			 (process->also_tcp[dev] ? 1u << MESH_PROVIDER_TCP : 0));
}

MESH_HOLDS(process)
static uint8_t flags_of(const struct mesh_process *process, int dev)
{
	return mesh_process_is_drained(process, dev) ? MESH_NEIGHBOUR_DRAINED : 0;
}

void mesh_nic_neighbours_refresh(struct mesh_process *process, const struct mesh_nic_table *table,
				 const struct mesh_nic *present, int num_present)
{
	struct mesh_neighbours *neighbours;
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	const struct mesh_nic *nic, *down[MESH_NICS_MAX];
	int dev, num_links = 0;

	mesh_process_assert_locked(process);
	neighbours = mesh_setup_of(process)->neighbours;
	if (!neighbours)
		return;
	for (dev = 0; dev < process->num_devs; dev++) {
		nic = nic_now(process->nics[dev], table, present, num_present);
		if (!nic || process->dev_reserves[dev] ||
		    process->dev_states[dev] == MESH_DEV_FAILED ||
		    is_listed(links, num_links, nic->ifindex))
			continue;
		mesh_neighbour_link_describe(&neighbours->self, nic, dev,
					     providers_of(process, dev), &links[num_links]);
		links[num_links++].about.flags = flags_of(process, dev);
	}
	mesh_neighbours_links_set(neighbours, links, num_links, true);
	mesh_reporting_down_set(&neighbours->answering.reporting, down,
				down_list(table, present, num_present, down));
}

void mesh_nic_neighbours_open(struct mesh_process *process)
{
	struct mesh_neighbour_self self;

	mesh_process_assert_locked(process);
	if (!process->config.neighbours)
		return;
	self_fill(process, &self);
	mesh_setup_of(process)->opened_ms = mesh_clock_ms();
	mesh_setup_of(process)->neighbours = mesh_neighbours_open(&process->engine, &self);
	mesh_nic_neighbours_refresh(process, &process->table, NULL, 0);
}

void mesh_nic_neighbours_close(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	mesh_neighbours_close(mesh_setup_of(process)->neighbours);
	mesh_setup_of(process)->neighbours = NULL;
}
