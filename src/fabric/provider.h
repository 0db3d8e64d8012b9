/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - finds the libfabric entry that serves one NIC, or explains why there is none. */
#ifndef MESH_FABRIC_PROVIDER_H
#define MESH_FABRIC_PROVIDER_H

#include <stddef.h>

#include <rdma/fabric.h>

#include "nic/addr.h"
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

/* Room for a reason in words. */
#define MESH_PROVIDER_REASON_MAX 512

/**
 * Finds the fi_getinfo entry for @nic by its source address, and verifies that it belongs to this
 * NIC: libfabric 1.17 ignores a domain name in the hints, and for an address that is not local its
 * tcp returns an entry named after the provider.
 *
 * @wanted: the only provider to try; MESH_PROVIDER_NONE tries verbs;ofi_rxm if the NIC has an RDMA
 *          device, then tcp
 * @info: the entry; the caller frees it with fi_freeinfo()
 * @id: which provider it is
 * @reason: MESH_PROVIDER_REASON_MAX bytes; on failure, what is missing and the remedy; on
 *          success, why a better provider was skipped, or ""
 *
 * Returns 0, or -ENODEV. Logs nothing.
 */
int mesh_provider_find(const struct mesh_nic *nic, enum mesh_provider_id wanted,
		       struct fi_info **info, enum mesh_provider_id *id, char *reason);

/**
 * Has libfabric list its RDMA devices anew, which it does only once for each process otherwise:
 * @nic has come up since. Does nothing where it cannot, before 2.2. Logs nothing.
 */
void mesh_provider_rescan(const struct mesh_nic *nic);

struct mesh_provider_verdict {
	enum mesh_provider_id id;
	char note[MESH_PROVIDER_REASON_MAX]; /* why a better provider was skipped, or "" */
};

/**
 * Finds the provider of the taken NIC @index of @table; if there is none, moves the NIC to the
 * skipped ones; later taken ones move up by one. Pointers to NICs of the table become invalid.
 *
 * @wanted: as for mesh_provider_find()
 * @verdict: written if the NIC stays taken
 *
 * Returns 0 or -ENODEV. Logs nothing.
 */
int mesh_provider_assign(enum mesh_provider_id wanted, struct mesh_nic_table *table, int index,
			 struct mesh_provider_verdict *verdict);

/**
 * Finds the provider of every taken NIC of @table, and skips the NICs that have none.
 *
 * @setting: NCCL_MESH_PROVIDER's value, "" for the best of each NIC
 * @verdicts: room for @table->num_taken; written for the NICs that stay taken, by dev
 *
 * Returns 0, or -EINVAL (logged) if @setting is not a supported provider.
 */
int mesh_providers_assign(const char *setting, struct mesh_nic_table *table,
			  struct mesh_provider_verdict *verdicts);

#define MESH_LIBFABRIC_VERSION_MAX 32

/**
 * True if an endpoint with tcp takes less than a MiB of resident memory with the loaded libfabric:
 * 0.7 MB with 1.17, and 17 MB with 2.1, which writes to its buffers when it opens one.
 */
bool mesh_tcp_endpoints_are_small(void);

/**
 * The version of the loaded libfabric, "2.1.0"; it may differ from the one at compile time.
 * @text: MESH_LIBFABRIC_VERSION_MAX bytes
 * Returns @text.
 */
const char *mesh_libfabric_version(char *text);

#endif
