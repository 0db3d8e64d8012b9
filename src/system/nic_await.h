/* SPDX-License-Identifier: Apache-2.0 */
/* nic_await.h - waits for NICs whose links have just come up. */
#ifndef MESH_SYSTEM_NIC_AWAIT_H
#define MESH_SYSTEM_NIC_AWAIT_H

#include <stdint.h>

#include "base/config.h"
#include "nic/nic.h"

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

#endif
