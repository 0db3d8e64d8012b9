/* SPDX-License-Identifier: Apache-2.0 */
/* nic_table.c - the NICs of this node: read from the kernel, selected, with reasons. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/nic_kind.h"
#include "nic/nic_select.h"
#include "nic/nic_sockets.h"
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
