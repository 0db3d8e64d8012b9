/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.h - the links and addresses of this network namespace, as the kernel reports them. */
#ifndef MESH_SYSTEM_NETLINK_H
#define MESH_SYSTEM_NETLINK_H

#include "nic/nic.h"

/**
 * Lists every network interface of the current network namespace.
 *
 * It sets netdev, ifindex, link_type, link_kind, master, lower, mac, admin_up, carrier, starting,
 * mtu, addrs (the ones that can be bound; secondary and deprecated ones last), num_unready and
 * default_route; all other fields are zero.
 *
 * @nics: receives an array that the caller frees with free(); NULL if there are none
 * @num_nics: receives its length
 *
 * Returns 0; -ENOMEM; -EIO if the kernel gives no valid answer (logged).
 */
int mesh_netlink_load(struct mesh_nic **nics, int *num_nics);

#endif
