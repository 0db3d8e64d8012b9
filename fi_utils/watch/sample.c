/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - reads the counters of NICs, RDMA ports and plugins at one moment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "system/nic_table.h"
#include "system/node.h"
#include "system/stats_file.h"
#include "system/sysfs.h"

#include "common/stats_folders.h"
#include "watch/sample.h"

/* ---- the kernel's counters ---------------------------------------------------------------- */

/* Adds the counter to @sum; false if there is none. */
static bool netdev_add(const struct mesh_sysfs *sysfs, const char *netdev, const char *name,
		       uint64_t *sum)
{
	uint64_t value;

	if (mesh_sysfs_read_number(sysfs, UINT64_MAX, &value, "class/net/%s/statistics/%s", netdev,
				   name))
		return false;
	*sum += value;
	return true;
}

static bool port_add(const struct mesh_sysfs *sysfs, const struct watch_nic *nic, const char *name,
		     uint64_t *sum)
{
	uint64_t value;

	if (mesh_sysfs_read_number(sysfs, UINT64_MAX, &value,
				   "class/infiniband/%s/ports/%d/counters/%s", nic->rdma,
				   nic->rdma_port, name))
		return false;
	*sum += value;
	return true;
}

static void hw_counters_read(const struct mesh_sysfs *sysfs, struct watch_nic *nic)
{
	struct dirent **entries = NULL;
	char path[128];
	int i, num;

	snprintf(path, sizeof(path), "class/infiniband/%s/ports/%d/hw_counters", nic->rdma,
		 nic->rdma_port);
	num = mesh_sysfs_list(sysfs, path, &entries);
	for (i = 0; i < num && nic->num_hw < WATCH_HW_COUNTERS; i++) {
		struct watch_hw_counter *counter = &nic->hw[nic->num_hw];

		if (strlen(entries[i]->d_name) >= sizeof(counter->name) ||
		    !strcmp(entries[i]->d_name, "lifespan"))
			continue; /* lifespan is a setting */
		if (mesh_sysfs_read_number(sysfs, UINT64_MAX, &counter->value, "%s/%s", path,
					   entries[i]->d_name))
			continue;
		snprintf(counter->name, sizeof(counter->name), "%.47s", entries[i]->d_name);
		nic->num_hw++;
	}
	mesh_sysfs_list_free(entries, num);
}

static void rdma_read(const struct mesh_sysfs *sysfs, struct watch_nic *nic)
{
	static const char *const errors[] = {"symbol_error", "port_rcv_errors",
					     "port_xmit_discards", "local_link_integrity_errors",
					     "excessive_buffer_overrun_errors"};
	size_t i;

	nic->rdma_known = port_add(sysfs, nic, "port_xmit_data", &nic->rdma_tx) &&
			  port_add(sysfs, nic, "port_rcv_data", &nic->rdma_rx);
	/* Both count 32-bit words (InfiniBand architecture 16.1.3.5, PortXmitData). */
	nic->rdma_tx *= 4;
	nic->rdma_rx *= 4;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		port_add(sysfs, nic, errors[i], &nic->rdma_errors);
	hw_counters_read(sysfs, nic);
}

/* ---- the plugins' pages ------------------------------------------------------------------- */

bool watch_link_is(const struct watch_link *link, const struct mesh_stats_entry *entry,
		   uint32_t pid)
{
	return link->pid == pid && mesh_stats_is_same(&link->entry, entry);
}

/* The link of this entry, added without counts if it is new; NULL without memory. */
static struct watch_link *link_get(struct watch_sample *sample,
				   const struct mesh_stats_entry *entry, uint32_t pid)
{
	struct watch_link *links;
	int i;

	for (i = 0; i < sample->num_links; i++)
		if (watch_link_is(&sample->links[i], entry, pid))
			return &sample->links[i];
	links = mesh_array_room(sample->links, (size_t)sample->num_links, sizeof(*links));
	if (!links)
		return NULL;
	sample->links = links;
	links += sample->num_links++;
	*links = (struct watch_link){.entry = *entry, .pid = pid};
	memset(&links->entry.counters, 0, sizeof(links->entry.counters));
	return links;
}

static void entry_add(struct watch_sample *sample, const struct mesh_stats_entry *entry,
		      uint32_t pid)
{
	struct watch_link *link = link_get(sample, entry, pid);

	if (!link)
		return;
	mesh_stats_add(&link->entry.counters, &entry->counters);
	link->open_paths += entry->state == MESH_STATS_OPEN;
	link->down_paths += entry->state == MESH_STATS_OPEN && entry->down;
	link->parked_paths += entry->state == MESH_STATS_OPEN && !entry->down &&
			      entry->parked != MESH_STATS_IN_USE;
}

bool watch_circuit_is(const struct watch_circuit *circuit, const struct mesh_stats_circuit *entry,
		      uint32_t pid)
{
	return circuit->pid == pid && mesh_stats_is_same(&circuit->circuit, entry);
}

static void circuit_add(struct watch_sample *sample, const struct mesh_stats_circuit *entry,
			uint32_t pid)
{
	struct watch_circuit *circuits = sample->circuits;
	int i = 0;

	while (i < sample->num_circuits && !watch_circuit_is(&circuits[i], entry, pid))
		i++;
	if (i == sample->num_circuits) {
		circuits = mesh_array_room(circuits, (size_t)i, sizeof(*circuits));
		if (!circuits)
			return;
		sample->circuits = circuits;
		sample->num_circuits++;
		circuits[i] = (struct watch_circuit){.circuit = *entry, .pid = pid};
		memset(&circuits[i].circuit.counters, 0, sizeof(entry->counters));
	}
	mesh_stats_add(&circuits[i].circuit.counters, &entry->counters);
	circuits[i].open += entry->state == MESH_STATS_OPEN;
}

struct pages {
	const struct watch_filter *filter;
	struct watch_sample *sample;
};

/* A page that cannot be read has no process id; its file has an owner. */
static bool is_wanted(const struct watch_filter *filter, const struct stats_found *found)
{
	if (filter->by_user && filter->uid != found->uid)
		return false;
	return !filter->pid || (!found->error && filter->pid == found->page.header.pid);
}

static void page_add(void *arg, const struct stats_found *found)
{
	struct pages *pages = arg;
	struct watch_sample *sample = pages->sample;
	struct watch_process *process;
	uint32_t i;

	if (!is_wanted(pages->filter, found))
		return;
	if (found->error) {
		sample->num_unread++;
		return;
	}
	process =
		mesh_array_room(sample->processes, (size_t)sample->num_processes, sizeof(*process));
	if (!process)
		return;
	sample->processes = process;
	process += sample->num_processes++;
	*process = (struct watch_process){.header = found->page.header, .uid = found->uid};
	for (i = 0; i < found->page.header.num_entries; i++) {
		const struct mesh_stats_entry *entry = &found->page.entries[i];

		if (entry->state == MESH_STATS_FREE)
			continue;
		process->num_open += entry->state == MESH_STATS_OPEN;
		entry_add(sample, entry, process->header.pid);
	}
	for (i = 0; i < found->page.header.num_circuits; i++) {
		if (found->page.circuits[i].state != MESH_STATS_FREE)
			circuit_add(sample, &found->page.circuits[i], process->header.pid);
	}
}

/* ---- NICs --------------------------------------------------------------------------------- */

/* True if processes share the NICs of this node: in a container they have others. */
static bool process_is_here(const struct watch_sample *sample, uint32_t pid)
{
	int i;

	for (i = 0; i < sample->num_processes; i++) {
		if (sample->processes[i].header.pid == pid)
			return sample->processes[i].header.node_id == mesh_node_id();
	}
	return false;
}

/* True if a connection that is open uses the NIC. */
static bool nic_is_used(const struct watch_sample *sample, const char *netdev)
{
	const struct watch_link *link;
	int i;

	for (i = 0; i < sample->num_links; i++) {
		link = &sample->links[i];
		if (link->open_paths && !strcmp(link->entry.nic, netdev) &&
		    process_is_here(sample, link->pid))
			return true;
	}
	return false;
}

static void nic_read(const struct mesh_sysfs *sysfs, const struct mesh_nic *from,
		     struct watch_nic *nic)
{
	static const char *const errors[] = {"tx_errors", "rx_errors", "tx_dropped", "rx_dropped"};
	size_t i;

	snprintf(nic->netdev, sizeof(nic->netdev), "%s", from->netdev);
	nic->up = mesh_nic_is_taken(from) ||
		  (from->verdict != MESH_NIC_LINK_DOWN && mesh_nic_is_usable(from));
	nic->speed_mbps = nic->up && from->speed_mbps > 0 ? from->speed_mbps : 0;
	nic->netdev_known = netdev_add(sysfs, nic->netdev, "tx_bytes", &nic->netdev_tx) &&
			    netdev_add(sysfs, nic->netdev, "rx_bytes", &nic->netdev_rx);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		netdev_add(sysfs, nic->netdev, errors[i], &nic->netdev_errors);
	if (!*from->rdma.device)
		return;
	snprintf(nic->rdma, sizeof(nic->rdma), "%s", from->rdma.device);
	nic->rdma_port = from->rdma.port;
	rdma_read(sysfs, nic);
}

/* NICs that connections use and that the kernel no longer has. */
static void vanished_add(struct watch_sample *sample)
{
	const char *name;
	int i, k;

	for (i = 0; i < sample->num_links; i++) {
		name = sample->links[i].entry.nic;
		for (k = 0; k < sample->num_nics && strcmp(sample->nics[k].netdev, name);)
			k++;
		if (k == sample->num_nics && nic_is_used(sample, name))
			snprintf(sample->nics[sample->num_nics++].netdev, IF_NAMESIZE, "%s", name);
	}
}

/* After the pages: a NIC that lost its cable may have lost its addresses, too. */
static int nics_read(const char *sysfs_root, const struct mesh_config *config,
		     struct watch_sample *sample)
{
	struct mesh_nic_table table = {0};
	struct mesh_sysfs sysfs;
	int i, ret;

	ret = mesh_nic_table_load(sysfs_root, config, &table);
	if (ret)
		return ret;
	sample->nics =
		calloc((size_t)(table.num_nics + sample->num_links) + 1, sizeof(*sample->nics));
	if (!sample->nics) {
		mesh_nic_table_free(&table);
		return -ENOMEM;
	}
	mesh_sysfs_open(sysfs_root, &sysfs);
	for (i = 0; i < table.num_nics; i++) {
		if (mesh_nic_is_taken(&table.nics[i]) ||
		    table.nics[i].verdict == MESH_NIC_LINK_DOWN ||
		    nic_is_used(sample, table.nics[i].netdev))
			nic_read(&sysfs, &table.nics[i], &sample->nics[sample->num_nics++]);
	}
	vanished_add(sample);
	mesh_sysfs_close(&sysfs);
	mesh_nic_table_free(&table);
	return 0;
}

static int circuit_order(const void *a, const void *b)
{
	const struct watch_circuit *x = a, *y = b;
	int order = strcmp(x->circuit.origin, y->circuit.origin);

	if (!order)
		order = strcmp(x->circuit.target, y->circuit.target);
	if (!order)
		order = strcmp(x->circuit.nic_up, y->circuit.nic_up);
	if (!order)
		order = strcmp(x->circuit.nic_down, y->circuit.nic_down);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static int link_order(const void *a, const void *b)
{
	const struct watch_link *x = a, *y = b;
	int order = strcmp(x->entry.nic, y->entry.nic);

	if (!order)
		order = strcmp(x->entry.peer, y->entry.peer);
	if (!order)
		order = memcmp(x->entry.remote, y->entry.remote, sizeof(x->entry.remote));
	if (!order)
		order = (int)y->entry.sending - (int)x->entry.sending;
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

int watch_sample_read(const char *sysfs_root, const struct mesh_config *config,
		      const struct watch_filter *filter, struct watch_sample *sample)
{
	struct pages pages = {filter, sample};
	int ret = 0;

	memset(sample, 0, sizeof(*sample));
	sample->time_ns = mesh_clock_ns();
	if (strcmp(config->stats_dir, MESH_STATS_NONE) != 0)
		ret = stats_files_read(config->stats_dir, page_add, &pages);
	sample->error = ret < 0 ? ret : 0;
	ret = nics_read(sysfs_root, config, sample);
	if (ret) {
		watch_sample_free(sample);
		return ret;
	}
	if (sample->num_links)
		qsort(sample->links, (size_t)sample->num_links, sizeof(*sample->links), link_order);
	if (sample->num_circuits)
		qsort(sample->circuits, (size_t)sample->num_circuits, sizeof(*sample->circuits),
		      circuit_order);
	return 0;
}

void watch_sample_free(struct watch_sample *sample)
{
	free(sample->nics);
	free(sample->links);
	free(sample->circuits);
	free(sample->processes);
	memset(sample, 0, sizeof(*sample));
}
