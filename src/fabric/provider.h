/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - asks libfabric for the entry that serves one NIC, and says what is missing. */
#ifndef MESH_FABRIC_PROVIDER_H
#define MESH_FABRIC_PROVIDER_H

#include <stddef.h>

#include <rdma/fabric.h>

#include "nic/nic.h"
#include "nic/provider_id.h"

/* Room for a reason in words. */
#define MESH_PROVIDER_REASON_MAX 512

/**
 * Finds the fi_getinfo entry for @nic by its source address, and verifies that it is this NIC's:
 * libfabric 1.17 ignores a domain name in the hints, and its tcp answers for an address that is
 * not local with an entry named after the provider.
 *
 * @wanted: the only provider to try; MESH_PROVIDER_NONE tries verbs;ofi_rxm if an RDMA device is
 *          behind the NIC, then tcp
 * @info: the entry; the caller frees it with fi_freeinfo()
 * @id: which provider it is
 * @reason: MESH_PROVIDER_REASON_MAX bytes; on failure, what is missing and what to do; on
 *          success, why a better provider was passed over, or ""
 *
 * Returns 0, or -ENODEV. Logs nothing.
 */
int mesh_provider_find(const struct mesh_nic *nic, enum mesh_provider_id wanted,
		       struct fi_info **info, enum mesh_provider_id *id, char *reason);

struct mesh_provider_verdict {
	enum mesh_provider_id id;
	char note[MESH_PROVIDER_REASON_MAX]; /* why a better provider was passed over, or "" */
};

/**
 * Asks for every taken NIC of @table, and leaves those that libfabric has nothing for.
 *
 * @setting: NCCL_MESH_PROVIDER's value, "" for the best of each NIC
 * @verdicts: room for @table->num_taken; those of the NICs that stay taken, by dev
 *
 * Returns 0, or -EINVAL (logged) if @setting names no provider of ours.
 */
int mesh_providers_assign(const char *setting, struct mesh_nic_table *table,
			  struct mesh_provider_verdict *verdicts);

#define MESH_LIBFABRIC_VERSION_MAX 32

/**
 * The version of the libfabric that runs, "2.1.0"; what we were compiled with may be another.
 * @text: MESH_LIBFABRIC_VERSION_MAX bytes
 * Returns @text.
 */
const char *mesh_libfabric_version(char *text);

#endif
