/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - the one place that calls fi_getinfo(). */
#ifndef MESH_FABRIC_INFO_H
#define MESH_FABRIC_INFO_H

#include <rdma/fabric.h>

#include "nic/nic.h"

/* The plugin compiles against 1.17 and runs on any newer version. */
#define MESH_FI_VERSION FI_VERSION(1, 17)

/* fi_getinfo(3): lists the devices anew. rdma/fabric.h since 2.2. */
#ifndef FI_RESCAN
#define FI_RESCAN (1ull << 35)
#endif

/**
 * Lists what libfabric offers at the source address of @nic.
 *
 * @hints: what fi_getinfo() filters by
 * @flags: 0, or FI_RESCAN, which needs libfabric 2.2
 * @list: the entries; the caller frees them with fi_freeinfo()
 *
 * Returns 0, or fi_getinfo()'s negative error: -FI_ENODATA if it offers nothing. Logs nothing.
 */
int mesh_info_list(const struct mesh_nic *nic, const struct fi_info *hints, uint64_t flags,
		   struct fi_info **list);

#endif
