/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - who this node is, and its links and addresses, as the kernel reports them. */
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

#endif
