/* SPDX-License-Identifier: Apache-2.0 */
/* nic_filter.h - the list of NICs that a user names, NCCL_MESH_NICS. */
#ifndef MESH_NIC_NIC_FILTER_H
#define MESH_NIC_NIC_FILTER_H

#include "nic/nic.h"

#define MESH_NIC_FILTER_MAX 64
/* No port given. */
#define MESH_NIC_FILTER_ANY_PORT 0

struct mesh_nic_filter_item {
	char name[MESH_RDMA_NAME_MAX]; /* of a netdev or RDMA device, or a prefix of it */
	int port;		       /* of the RDMA device, from 1, or MESH_NIC_FILTER_ANY_PORT */
};

/* No items: the user named no NIC. */
struct mesh_nic_filter {
	bool exclude; /* '^': all but the named */
	bool exact;   /* '=': whole names, not prefixes */
	struct mesh_nic_filter_item items[MESH_NIC_FILTER_MAX];
	int num_items;
};

/**
 * Reads a list with NCCL_IB_HCA's grammar (NCCL manual, environment variables): a comma list of
 * names, each with an optional :port; '^' before the list excludes, '=' selects exact names,
 * "^=" does both. Blanks around names are allowed, empty items are skipped.
 *
 * Returns 0; -EINVAL (logged, with the cause) for anything else. @filter is written on success
 * only.
 */
int mesh_nic_filter_parse(const char *text, struct mesh_nic_filter *filter);

/**
 * True when the item names @nic: its netdev, its RDMA device, or in full the name that NCCL prints
 * ("mesh-eth0"). An item with a port names RDMA devices only.
 */
bool mesh_nic_filter_item_matches(const struct mesh_nic_filter *filter,
				  const struct mesh_nic_filter_item *item,
				  const struct mesh_nic *nic);

/** True when any item names @nic. */
bool mesh_nic_filter_names(const struct mesh_nic_filter *filter, const struct mesh_nic *nic);

#endif
