/* SPDX-License-Identifier: Apache-2.0 */
/* nic_table.c - the NICs of this node: read from the kernel, selected, with reasons. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "nic/nic_filter.h"
#include "nic/nic_kind.h"
#include "nic/nic_select.h"
#include "system/link_state.h"
#include "system/netlink.h"
#include "system/nic_table.h"
#include "system/sysfs.h"
#include "system/sysfs_rdma.h"

static int sysfs_load(const char *root, struct mesh_nic_table *table)
{
	struct mesh_sysfs sysfs;
	int i, ret;

	ret = mesh_sysfs_open(root, &sysfs);
	if (ret) {
		mesh_warn("cannot read %s (%s): speeds, PCI paths and RDMA devices of the NICs are "
			  "unknown; mount sysfs there",
			  root, strerror(-ret));
		return 0;
	}
	for (i = 0; i < table->num_nics; i++)
		mesh_sysfs_netdev_load(&sysfs, &table->nics[i]);
	ret = mesh_sysfs_rdma_load(&sysfs, table->nics, table->num_nics);
	mesh_sysfs_close(&sysfs);
	for (i = 0; i < table->num_nics; i++) {
		mesh_sysfs_pci_link_load(table->nics[i].pci_path, &table->nics[i].pci_link);
		table->nics[i].numa_node = mesh_sysfs_numa_node(table->nics[i].pci_path);
	}
	return ret;
}

/* A NIC that cannot be used now is judged as it was when it could. */
static int known_restore(struct mesh_nic_table *table, const struct mesh_nic *known)
{
	struct mesh_nic *grown;
	int i = 0;

	while (i < table->num_nics && table->nics[i].ifindex != known->ifindex)
		i++;
	if (i < table->num_nics && mesh_nic_is_usable(&table->nics[i]))
		return 0;
	if (i == table->num_nics) {
		grown = realloc(table->nics, ((size_t)i + 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		table->nics = grown;
		table->num_nics++;
	}
	table->nics[i] = *known;
	return 0;
}

int mesh_nic_table_load(const char *sysfs_root, const struct mesh_config *config,
			struct mesh_nic_table *table)
{
	return mesh_nic_table_load_with(sysfs_root, config, NULL, 0, table);
}

int mesh_nic_table_load_with(const char *sysfs_root, const struct mesh_config *config,
			     const struct mesh_nic *const *known, int num_known,
			     struct mesh_nic_table *table)
{
	struct mesh_nic_table result = {0};
	int i, ret;

	ret = mesh_netlink_load(&result.nics, &result.num_nics);
	if (ret)
		return ret;
	ret = sysfs_load(sysfs_root, &result);
	for (i = 0; i < num_known && !ret; i++)
		ret = known_restore(&result, known[i]);
	if (!ret) {
		mesh_nic_classify(result.nics, result.num_nics);
		mesh_nic_sockets_mark(config->sockets, result.nics, result.num_nics);
		ret = mesh_nic_select(config->nics, config->addresses, &result);
	}
	if (ret)
		mesh_nic_table_free(&result);
	else
		*table = result;
	return ret;
}

void mesh_nic_table_free(struct mesh_nic_table *table)
{
	free(table->nics);
	memset(table, 0, sizeof(*table));
}

void mesh_nic_table_log(const struct mesh_nic_table *table)
{
	enum mesh_log_level level = table->num_taken ? MESH_LOG_INFO : MESH_LOG_WARN;
	const struct mesh_nic *nic;

	if (!table->num_taken)
		mesh_warn("no NIC of this node can carry the mesh; the reason for each NIC:");
	for (nic = table->nics; nic < table->nics + table->num_nics; nic++)
		mesh_log(level, __FILE__, __LINE__, "NIC %s %s", nic->netdev, nic->reason);
}

static bool any_starting(const struct mesh_nic_table *table)
{
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (table->nics[i].starting)
			return true;
	return false;
}

/*
 * Selects as if every NIC that has a carrier were running. In the result, starting is set on the
 * taken NICs to wait for.
 */
static int awaited_find(const struct mesh_config *config, const struct mesh_nic_table *table,
			struct mesh_nic_table *awaited)
{
	size_t size = (size_t)table->num_nics * sizeof(*table->nics);
	int i, k, ret;

	*awaited = *table;
	awaited->nics = malloc(size);
	if (!awaited->nics)
		return -ENOMEM;
	memcpy(awaited->nics, table->nics, size);
	for (i = 0; i < awaited->num_nics; i++)
		awaited->nics[i].starting = false;
	ret = mesh_nic_select(config->nics, config->addresses, awaited);
	for (i = 0; i < awaited->num_nics && !ret; i++) {
		for (k = 0; k < table->num_nics; k++)
			if (table->nics[k].ifindex == awaited->nics[i].ifindex)
				awaited->nics[i].starting = table->nics[k].starting &&
							    awaited->nics[i].taken;
	}
	return ret;
}

/* Reads the awaited NICs again. Returns true if one of them is still starting. */
static bool awaited_look(struct mesh_nic_table *awaited)
{
	struct mesh_nic *now = NULL;
	int i, k, num;

	if (mesh_netlink_load(&now, &num))
		return false;
	for (i = 0; i < awaited->num_nics; i++) {
		struct mesh_nic *nic = &awaited->nics[i];
		bool starting = false;

		for (k = 0; k < num; k++)
			starting |= now[k].ifindex == nic->ifindex && now[k].starting;
		nic->starting &= starting;
	}
	free(now);
	return any_starting(awaited);
}

static void awaited_log(const struct mesh_nic_table *awaited, uint64_t wait_ms)
{
	int i;

	for (i = 0; i < awaited->num_nics; i++)
		if (awaited->nics[i].starting)
			mesh_info("waiting up to %llu ms for %s: its link has just come up",
				  (unsigned long long)wait_ms, awaited->nics[i].netdev);
}

/* Waits until none of the awaited NICs is starting, or until the time is over. */
static void awaited_wait(struct mesh_nic_table *awaited, uint64_t wait_ms)
{
	uint64_t start_ms = mesh_clock_ms(), waited_ms = 0;
	struct pollfd event = {.events = POLLIN};

	event.fd = mesh_netlink_watch_open();
	if (event.fd < 0) {
		mesh_info("cannot watch the links: %s", strerror(-event.fd));
		return;
	}
	awaited_log(awaited, wait_ms);
	/* The socket is open before the first reading, so no change is missed. */
	while (awaited_look(awaited) && waited_ms < wait_ms) {
		if (poll(&event, 1, (int)(wait_ms - waited_ms)) > 0)
			mesh_netlink_watch_drain(event.fd);
		waited_ms = mesh_clock_ms() - start_ms;
	}
	mesh_descriptor_close(event.fd);
	mesh_info("waited %llu ms for the links", (unsigned long long)waited_ms);
}

int mesh_nic_table_load_running(const char *sysfs_root, const struct mesh_config *config,
				uint64_t wait_ms, struct mesh_nic_table *table)
{
	struct mesh_nic_table found = {0}, awaited = {0};
	int ret;

	ret = mesh_nic_table_load(sysfs_root, config, &found);
	if (ret)
		return ret;
	if (any_starting(&found)) {
		ret = awaited_find(config, &found, &awaited);
		if (!ret && any_starting(&awaited)) {
			awaited_wait(&awaited, wait_ms);
			mesh_nic_table_free(&found);
			ret = mesh_nic_table_load(sysfs_root, config, &found);
		}
		mesh_nic_table_free(&awaited);
	}
	if (ret)
		mesh_nic_table_free(&found);
	else
		*table = found;
	return ret;
}
