/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - who this node is, and its links, addresses and routes, as the kernel reports them. */
#ifndef MESH_SYSTEM_NODE_H
#define MESH_SYSTEM_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"

/**
 * The identity of this node: this boot of this kernel, and the network namespace. A number that is
 * equal for all processes that share the NICs, and different for all other processes.
 */
uint64_t mesh_node_id(void);

/**
 * Writes this node's name for messages into @name of @size bytes, cut if too long; returns @name.
 *
 * @setting: NCCL_MESH_NODE_NAME; "": the host name
 */
const char *mesh_node_name(const char *setting, char *name, size_t size);

/**
 * Lists every network interface of the current network namespace.
 *
 * It sets netdev, ifindex, link_type, link_kind, master, lower, mac, state, mtu, the addresses
 * (the ones that can be bound; secondary and deprecated ones last), num_unready and management
 * (MESH_NIC_DEFAULT_ROUTE); all other fields are zero.
 *
 * @nics: receives an array that the caller frees with free(); NULL if there are none
 * @num_nics: receives its length
 *
 * Returns 0; -ENOMEM; -EIO if the kernel gives no valid answer (logged).
 */
int mesh_netlink_load(struct mesh_nic **nics, int *num_nics);

struct nl_sock;

/** For several questions about routes: the socket of the first one serves them all. Begins as 0. */
struct mesh_routes {
	struct nl_sock *sock;
};

/** Ends the questions; a further one begins anew. */
void mesh_routes_close(struct mesh_routes *routes);

/**
 * Asks for the route of a packet from @source (an address of this node) to @destination, as `ip
 * route get DESTINATION from SOURCE` does.
 *
 * @routes: NULL: this is the only question
 * @ifindex: the interface by which it would leave
 *
 * Returns 0; -ENETUNREACH and the like if the kernel has no such route; -EIO if it does not
 * answer. Logs nothing.
 */
int mesh_route_find(struct mesh_routes *routes, const struct mesh_addr *source,
		    const struct mesh_addr *destination, unsigned int *ifindex);

/**
 * True if the kernel's route of a packet from @source, an address of the NIC @ifindex, to
 * @destination leaves by that NIC. Logs nothing.
 */
bool mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *source,
		      unsigned int ifindex, const struct mesh_addr *destination);

#endif
