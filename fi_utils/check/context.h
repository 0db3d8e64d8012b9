/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - what the checks of this node look at. */
#ifndef MESH_FI_UTILS_CHECK_CONTEXT_H
#define MESH_FI_UTILS_CHECK_CONTEXT_H

#include <stdbool.h>

#include "base/config.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/nic_filter.h"
#include "system/sysfs.h"

/* What is looked at. Plain data, so that tests can make one. */
struct check_context {
	struct mesh_sysfs files; /* "/", or a recorded tree: "sys/...", "proc/...", "dev/..." */
	struct mesh_config config;
	struct mesh_nic_filter filter; /* config.nics */
	struct mesh_nic_table table;
	const char *nccl_file; /* --nccl, or NULL: look for it */
};

/**
 * Reads what the checks look at.
 *
 * @root: "/", or a folder with recorded "sys", "proc" and "dev"; netlink is always the living one
 *
 * Returns 0, or a negative errno (logged).
 */
int check_context_load(struct check_context *context, const char *root);

void check_context_free(struct check_context *context);

/** True if NCCL_MESH_NICS, or without it its kind, makes it one that should carry the mesh. */
bool check_nic_is_wanted(const struct check_context *context, const struct mesh_nic *nic);

/** An address that somebody gave it, or NULL: link-local ones come on their own. */
const struct mesh_addr *check_given_address(const struct mesh_nic *nic);

/** True if any NIC has an RDMA device behind it. */
bool check_has_rdma(const struct check_context *context);

/** True if the machine's processors are arm64. */
bool check_is_arm64(const struct check_context *context);

/** True in a container, where devices and limits are the runtime's business. */
bool check_in_container(const struct check_context *context);

#endif
