/* SPDX-License-Identifier: Apache-2.0 */
/* subnet.h - how the subnets of two NICs of one node conflict, and what the kernel does then. */
#ifndef MESH_FI_UTILS_COMMON_SUBNET_H
#define MESH_FI_UTILS_COMMON_SUBNET_H

#include "nic/addr.h"
#include "system/sysfs.h"

enum mesh_subnet_relation {
	MESH_SUBNET_APART,
	MESH_SUBNET_OVERLAPS,	  /* one holds the other, with another prefix length */
	MESH_SUBNET_SAME,	  /* one subnet, two addresses */
	MESH_SUBNET_SAME_ADDRESS, /* the very same address */
};

/**
 * Compares two addresses with their prefix lengths. Link-local and loopback addresses and those of
 * different families never conflict: they are not tied to a cable.
 */
enum mesh_subnet_relation mesh_subnet_compare(const struct mesh_addr *a, const struct mesh_addr *b);

/** The subnet of @addr, a peer's if it has one: its address bits behind the prefix are zero. */
struct mesh_addr mesh_subnet_of(const struct mesh_addr *addr);

/**
 * Makes the @number-th address of @addr's subnet that a neighbour could have: not @addr itself, nor
 * (IPv4 up to /30) the subnet's first and last. On a point-to-point link it is the peer.
 *
 * @number: from 0
 *
 * Returns 0, or -EADDRNOTAVAIL if there are fewer; at most 254 are counted.
 */
int mesh_subnet_neighbour(const struct mesh_addr *addr, int number, struct mesh_addr *neighbour);

/**
 * What the kernel uses of net.ipv4.conf.*.NAME: the larger of "all" and the NIC's own
 * (ip-sysctl.rst); -1 if it cannot be read.
 *
 * @files: opened at "/"
 */
int check_ipv4_setting(const struct mesh_sysfs *files, const char *netdev, const char *name);

#endif
