/* SPDX-License-Identifier: Apache-2.0 */
/* nic_table.c - the NICs of this node: read from the kernel, selected, and their changes. */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "nic/user_lists.h"
#include "nic/nic.h"
#include "nic/nic_select.h"
#include "system/nic_table.h"
#include "system/node.h"
#include "system/sysfs.h"

/* A VLAN on a bond on a port is two steps up from it. */
#define LOWER_STEPS 2

/* A VLAN or bond has no device of its own: it has that of the first interface below it. */
static void lower_paths_take(struct mesh_nic *nics, int num_nics)
{
	int i, k;

	for (i = 0; i < num_nics; i++) {
		for (k = 0; k < num_nics && !*nics[i].pci_path; k++) {
			if (nics[i].lower == nics[k].ifindex || nics[k].master == nics[i].ifindex)
				memcpy(nics[i].pci_path, nics[k].pci_path,
				       sizeof(nics[i].pci_path));
		}
	}
}

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
	for (i = 0; i < LOWER_STEPS; i++)
		lower_paths_take(table->nics, table->num_nics);
	ret = mesh_sysfs_rdma_load(&sysfs, table->nics, table->num_nics);
	for (i = 0; i < table->num_nics; i++)
		table->nics[i].numa_node = mesh_sysfs_numa_node(&sysfs, table->nics[i].pci_path);
	mesh_sysfs_close(&sysfs);
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

/* ---- changes -------------------------------------------------------------------------------- */

/* @fd: any socket */
static bool nic_runs(int fd, const struct mesh_nic *nic)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", nic->netdev);
	if (ioctl(fd, SIOCGIFFLAGS, &request))
		return errno != ENODEV;
	return request.ifr_flags & IFF_RUNNING;
}

bool mesh_carrier_is_up(const struct mesh_nic *nic)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool runs;

	if (fd < 0)
		return true;
	runs = nic_runs(fd, nic);
	close(fd);
	return runs;
}

int mesh_netlink_watch_open(void)
{
	struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&groups, sizeof(groups)))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

void mesh_netlink_watch_drain(int fd)
{
	char byte;

	/* Reading one byte drops the whole datagram. */
	while (recv(fd, &byte, sizeof(byte), 0) >= 0 || errno == ENOBUFS || errno == EINTR)
		continue;
}

/* ---- NICs that come up ---------------------------------------------------------------------- */

/* True if a NIC would be taken, and its link has just come up. Logs these if @wait_ms is not 0. */
static bool is_awaited(const struct mesh_nic_table *table, uint64_t wait_ms)
{
	const struct mesh_nic *nic;
	bool awaited = false;

	for (nic = table->nics; nic < table->nics + table->num_nics; nic++) {
		if (nic->state != MESH_NIC_STARTING || nic->verdict != MESH_NIC_LINK_DOWN)
			continue;
		awaited = true;
		if (wait_ms)
			mesh_info("waiting up to %llu ms for %s: its link has just come up",
				  (unsigned long long)wait_ms, nic->netdev);
	}
	return awaited;
}

int mesh_nic_table_load_running(const char *sysfs_root, const struct mesh_config *config,
				uint64_t wait_ms, struct mesh_nic_table *table)
{
	uint64_t start_ms = mesh_clock_ms(), waited_ms = 0;
	struct pollfd event = {.events = POLLIN};
	int ret = mesh_nic_table_load(sysfs_root, config, table);

	if (ret || !is_awaited(table, wait_ms))
		return ret;
	event.fd = mesh_netlink_watch_open();
	if (event.fd < 0) {
		mesh_info("cannot watch the links: %s", strerror(-event.fd));
		return 0;
	}
	/* The socket is open before the next reading, so no change is missed. */
	do {
		mesh_nic_table_free(table);
		ret = mesh_nic_table_load(sysfs_root, config, table);
		if (ret || waited_ms >= wait_ms || !is_awaited(table, 0))
			break;
		if (poll(&event, 1, (int)(wait_ms - waited_ms)) > 0)
			mesh_netlink_watch_drain(event.fd);
		waited_ms = mesh_clock_ms() - start_ms;
	} while (true);
	mesh_descriptor_close(event.fd);
	mesh_info("waited %llu ms for the links", (unsigned long long)waited_ms);
	return ret;
}
