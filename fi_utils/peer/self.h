/* SPDX-License-Identifier: Apache-2.0 */
/* self.h - this node, as `fi_mesh check --peer` and `fi_mesh serve` see and describe it. */
#ifndef MESH_FI_UTILS_PEER_SELF_H
#define MESH_FI_UTILS_PEER_SELF_H

#include "base/config.h"
#include "neighbours/datagram.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/user_lists.h"
#include "peer/wire.h"
#include "wire/protocol.h"

struct peer_self {
	struct mesh_config config;
	struct mesh_rails rails; /* config.rails */
	struct mesh_nic_table table;
	int num_nics; /* that carry the mesh and fit into a HELLO: at most MESH_NICS_MAX */
	enum mesh_provider_id providers[MESH_NICS_MAX]; /* of table.nics[0 .. num_nics - 1] */
	uint64_t node_id; /* distinguishes two nodes with the same name */
	char name[MESH_NODE_NAME_MAX];
};

/**
 * Reads settings, NICs and providers as the plugin does. Returns 0 or a negative errno: with
 * settings with which the plugin does not start, it fails as well (logged).
 */
int peer_self_open(struct peer_self *self);

/** Reads the NICs again: carriers and addresses change. On failure the old ones stay. */
int peer_self_refresh(struct peer_self *self);

void peer_self_close(struct peer_self *self);

/** Writes this node's site as it travels, cut to @site (MESH_SITE_NAME_MAX bytes); "": none. */
void peer_self_site(const struct peer_self *self, char *site);

/** Fills in the HELLO of this node. */
void peer_self_hello(const struct peer_self *self, struct mesh_check_hello *hello);

/**
 * True if a NIC whose best provider is @provider offers tcp as well, to NICs without RDMA. Holds
 * for the NICs of other nodes, too: NCCL_MESH_PROVIDER is the same on all.
 */
bool peer_self_also_tcp(const struct peer_self *self, enum mesh_provider_id provider);

/** What the NIC @index offers, bit N: enum mesh_provider_id N. */
uint8_t peer_self_providers(const struct peer_self *self, int index);

/** The best of the providers with these bits; RDMA comes first. */
enum mesh_provider_id peer_best_provider(uint8_t providers);

/** The NIC whose source address is @addr, or NULL. */
const struct mesh_nic *peer_self_nic(const struct peer_self *self, const struct mesh_addr *addr);

/**
 * Describes the links of this node for questions to its neighbours. Loopback has no other end.
 *
 * @about: what is asked for: the node and its process
 * @links: room for MESH_NICS_MAX
 *
 * Returns how many there are.
 */
int peer_self_links(const struct peer_self *self, const struct mesh_neighbour_self *about,
		    struct mesh_neighbour_link *links);

#endif
