/* SPDX-License-Identifier: Apache-2.0 */
/* nic_filter.h - the lists of NICs that a user names: NCCL_MESH_NICS, NCCL_SOCKET_IFNAME. */
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
 * Calls @add with each item of a comma list, without the blanks around it, until it fails. Empty
 * items are skipped. Returns 0, or -EINVAL if @add has failed.
 */
int mesh_list_parse(const char *text, int (*add)(void *arg, const char *item, size_t len),
		    void *arg);

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

/**
 * Sets socket_named of each NIC that the list names, and clears it of the others. The grammar is
 * that of NCCL (NCCL manual, environment variables): a comma list of prefixes of netdev names; a
 * leading '=' selects exact names. A list with a leading '^' names the NICs that are not used, so
 * it names none here. NCCL reports what it cannot use; this function logs nothing.
 */
void mesh_nic_sockets_mark(const char *list, struct mesh_nic *nics, int num_nics);

#endif
