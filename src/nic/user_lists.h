/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_lists.h - the lists that a user writes: of NICs (NCCL_MESH_NICS), and of subnets
 * (NCCL_MESH_ADDRESSES, NCCL_MESH_RAILS).
 */
#ifndef MESH_NIC_USER_LISTS_H
#define MESH_NIC_USER_LISTS_H

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
 * True when any item names @nic: its netdev, its RDMA device, or in full the name that NCCL prints
 * ("mesh-eth0"). An item with a port names RDMA devices only.
 */
bool mesh_nic_filter_names(const struct mesh_nic_filter *filter, const struct mesh_nic *nic);

#define MESH_RAIL_SUBNETS_MAX 64

/* The subnets of all rails: which NICs of two nodes belong together on a routed fabric. */
struct mesh_rails {
	int num_subnets;
	struct {
		struct mesh_addr subnet;
		int rail; /* from 0 on */
	} subnets[MESH_RAIL_SUBNETS_MAX];
};

/**
 * Reads "10.1.0.0/16+10.65.0.0/16,10.2.0.0/16": a comma list of rails, each of which is a list of
 * subnets. Blanks around them are skipped; an empty text is no rail.
 *
 * Returns 0 or -EINVAL (logged); @rails is written on success only.
 */
int mesh_rails_parse(const char *text, struct mesh_rails *rails);

/** The rail in whose subnets the address lies, by the longest prefix; -1: in none. */
int mesh_rail_of(const struct mesh_rails *rails, const struct mesh_addr *addr);

/** Reads the comma list of NCCL_MESH_ADDRESSES in the same way; a rail for each subnet. */
int mesh_addresses_parse(const char *text, struct mesh_rails *subnets);

#endif
