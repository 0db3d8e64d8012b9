/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - the state of this node that the checks examine. */
#ifndef MESH_FI_UTILS_CHECK_CONTEXT_H
#define MESH_FI_UTILS_CHECK_CONTEXT_H

#include <stdbool.h>

#include "base/config.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/user_lists.h"
#include "system/stats_file.h"
#include "system/sysfs.h"

/* What the checks examine. Plain data, so that tests can make one. */
struct check_context {
	struct mesh_sysfs files; /* "/", or a recorded tree: "sys/...", "proc/...", "dev/..." */
	struct mesh_config config;
	struct mesh_nic_filter filter; /* config.nics */
	struct mesh_nic_table table;
	struct mesh_drain_marks drained; /* by `fi_mesh drain`; with "/" only */
	const char *nccl_file;		 /* --nccl, or NULL: look for it */
};

/**
 * Reads what the checks examine.
 *
 * @root: "/", or a folder with recorded "sys", "proc" and "dev"; netlink is always the kernel's own
 *
 * Returns 0, or a negative errno (logged).
 */
int check_context_load(struct check_context *context, const char *root);

void check_context_free(struct check_context *context);

/**
 * True if the NIC should carry the mesh: NCCL_MESH_NICS names it or, without that, its kind fits.
 */
bool check_nic_is_wanted(const struct check_context *context, const struct mesh_nic *nic);

/** A configured address of the NIC, or NULL: link-local ones are automatic. */
const struct mesh_addr *check_given_address(const struct mesh_nic *nic);

/** True if any NIC has an RDMA device behind it. */
bool check_has_rdma(const struct check_context *context);

/** True if the machine's processors are arm64. */
bool check_is_arm64(const struct check_context *context);

/** True in a container, where devices and limits are the runtime's business. */
bool check_in_container(const struct check_context *context);

#endif
