/* SPDX-License-Identifier: Apache-2.0 */
/* nic_table.h - the NICs of this node: read from the kernel, selected, and their changes. */
#ifndef MESH_SYSTEM_NIC_TABLE_H
#define MESH_SYSTEM_NIC_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "nic/nic.h"

/**
 * Reads the interfaces of the current network namespace and decides which carry the mesh
 * (nic_select.h), by @config's nics and addresses.
 *
 * @sysfs_root: "/sys"; where it cannot be read (logged), speeds, PCI paths and RDMA devices stay
 * unknown
 *
 * Returns 0, also if no NIC is taken (check num_taken); -EINVAL if a setting is not valid; -EIO if
 * the kernel does not answer; -ENOMEM. Failures are logged.
 */
int mesh_nic_table_load(const char *sysfs_root, const struct mesh_config *config,
			struct mesh_nic_table *table);

/**
 * Does the same for a process that already uses NICs. If one of these cannot be used at present, or
 * is not there, it is judged as it was when it could: that a cable is pulled does not turn the
 * management network into a mesh NIC.
 *
 * @known: the NICs in use, with all that was read of them; @num_known of them
 */
int mesh_nic_table_load_with(const char *sysfs_root, const struct mesh_config *config,
			     const struct mesh_nic *const *known, int num_known,
			     struct mesh_nic_table *table);

/** Frees the contents of a table of mesh_nic_table_load(). A zeroed table is allowed. */
void mesh_nic_table_free(struct mesh_nic_table *table);

/** Logs each NIC with its reason: at INFO, or at WARN if no NIC is taken. */
void mesh_nic_table_log(const struct mesh_nic_table *table);

/**
 * Reads the NICs as mesh_nic_table_load() does. If a NIC that would be taken has a carrier but is
 * not IFF_RUNNING yet, it waits for IFF_RUNNING first: libfabric skips such a NIC, and its verbs
 * provider lists the devices only once in the life of the process. Otherwise it does not wait.
 *
 * @wait_ms: the longest wait; a NIC that needs longer is skipped
 *
 * Returns as mesh_nic_table_load() does.
 */
int mesh_nic_table_load_running(const char *sysfs_root, const struct mesh_config *config,
				uint64_t wait_ms, struct mesh_nic_table *table);

/** False only if the kernel says that the NIC is down, has no carrier, or is gone. */
bool mesh_carrier_is_up(const struct mesh_nic *nic);

/**
 * Opens the socket, non-blocking, for the current network namespace; a forked child does not keep
 * it. Close it with mesh_descriptor_close().
 *
 * Returns the descriptor, or a negative errno.
 */
int mesh_netlink_watch_open(void);

/**
 * Reads and drops all pending events. An event only shows that something changed: the state itself
 * comes from mesh_nic_table_load(), so an overrun of the socket loses nothing.
 */
void mesh_netlink_watch_drain(int fd);

#endif
