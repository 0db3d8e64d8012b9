/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facing.h - the nodes that this node's cables lead to, as the plugin's own question finds them
 * (neighbours/asking.h): without an address in common, and with cables in the wrong ports.
 */
#ifndef MESH_FI_UTILS_PEER_FACING_H
#define MESH_FI_UTILS_PEER_FACING_H

#include "peer/self.h"

/* Neighbours kept for one NIC: a cable has one, a switch more. */
#define PEER_FACING_MAX 8

/* A NIC of another node. */
struct peer_faced {
	uint64_t node_id;
	char peer_netdev[MESH_CHECK_NETDEV_MAX];
	char peer[MESH_NODE_NAME_MAX];
	struct mesh_addr from; /* the address that answered, with its zone */
};

/* What one NIC has heard. */
struct peer_facing {
	int error; /* why it could not ask: negative errno */
	struct peer_faced heard[PEER_FACING_MAX];
	int num_heard;
};

/** Asks on all NICs at once, and waits for half a second at most. @facing: beside the NICs */
void peer_facing_ask(const struct peer_self *self, struct peer_facing *facing);

/** The NIC @netdev (NULL: any) of that node, as it was heard; NULL: it was not. */
const struct peer_faced *peer_facing_find(const struct peer_facing *facing, uint64_t node_id,
					  const char *netdev);

#endif
