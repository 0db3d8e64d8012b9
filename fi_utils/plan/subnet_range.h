/* SPDX-License-Identifier: Apache-2.0 */
/* subnet_range.h - cuts a range of addresses into subnets, one for each cable. */
#ifndef MESH_FI_UTILS_PLAN_SUBNET_RANGE_H
#define MESH_FI_UTILS_PLAN_SUBNET_RANGE_H

#include "nic/addr.h"

/*
 * Subnets of prefix_len, one behind the other. The address of @first says where they start, its
 * prefix length how far they may go: 192.168.100.0/16 ends at 192.168.255.255.
 */
struct mesh_subnets {
	struct mesh_addr first;
	uint8_t prefix_len; /* at least 1 */
};

/**
 * Checks a range: the subnets must be smaller than the range and have room for two nodes, the first
 * address must be the start of such a subnet, and the range must be for hosts (no loopback,
 * link-local or multicast addresses).
 *
 * Returns 0, or -EINVAL (logged).
 */
int mesh_subnets_check(const struct mesh_subnets *subnets);

/** How many subnets there are; UINT64_MAX: that many or more. */
uint64_t mesh_subnets_count(const struct mesh_subnets *subnets);

/** Subnet @index, which must be below the count. */
struct mesh_addr mesh_subnets_get(const struct mesh_subnets *subnets, uint64_t index);

/**
 * The address of node @host (0 or 1) in @subnet, with the prefix length: the second and third
 * address, since the first one names the subnet; in a /31 or /127 the only two (RFC 3021, 6164).
 */
struct mesh_addr mesh_subnet_host(const struct mesh_addr *subnet, int host);

/**
 * A unique local IPv6 range of /48 (RFC 4193) that depends on @seed only, so that the same plan
 * gives the same addresses. @seed: any text, such as the names of the nodes
 */
struct mesh_addr mesh_subnet_ula(const char *seed);

#endif
