/* SPDX-License-Identifier: Apache-2.0 */
/* subnet.c - how the subnets of two NICs of one node conflict, and what the kernel does then. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/subnet.h"

static bool says_nothing(const struct mesh_addr *addr)
{
	return addr->family == MESH_FAMILY_NONE || mesh_addr_is_link_local(addr) ||
	       mesh_addr_is_loopback(addr);
}

enum mesh_subnet_relation mesh_subnet_compare(const struct mesh_addr *a, const struct mesh_addr *b)
{
	if (a->family != b->family || says_nothing(a) || says_nothing(b))
		return MESH_SUBNET_APART;
	if (mesh_addr_equal(a, b))
		return MESH_SUBNET_SAME_ADDRESS;
	if (!mesh_addr_in_subnet(a, b) && !mesh_addr_in_subnet(b, a))
		return MESH_SUBNET_APART;
	return a->prefix_len == b->prefix_len ? MESH_SUBNET_SAME : MESH_SUBNET_OVERLAPS;
}

struct mesh_addr mesh_subnet_of(const struct mesh_addr *addr)
{
	struct mesh_addr subnet = *addr;
	size_t i, bits;

	if (addr->has_peer)
		memcpy(subnet.bytes, addr->peer, sizeof(subnet.bytes));
	subnet.has_peer = false;
	memset(subnet.peer, 0, sizeof(subnet.peer));
	for (i = 0; i < sizeof(subnet.bytes); i++) {
		bits = subnet.prefix_len > 8 * i ? subnet.prefix_len - 8 * i : 0;
		if (bits < 8)
			subnet.bytes[i] &= (uint8_t)(0xff00u >> bits);
	}
	subnet.scope_id = 0;
	return subnet;
}

int mesh_subnet_neighbour(const struct mesh_addr *addr, int number, struct mesh_addr *neighbour)
{
	unsigned int bits = 8 * (unsigned int)mesh_addr_size(addr->family);
	unsigned int host_bits = addr->prefix_len < bits ? bits - addr->prefix_len : 0;
	unsigned int mask = host_bits < 8 ? (1u << host_bits) - 1 : 0xff, change, host;
	bool has_ends = addr->family == MESH_FAMILY_IPV4 && host_bits > 1;
	uint8_t last;

	if (addr->has_peer) {
		if (number)
			return -EADDRNOTAVAIL;
		*neighbour = (struct mesh_addr){
			.family = addr->family,
			.prefix_len = addr->prefix_len,
		};
		memcpy(neighbour->bytes, addr->peer, sizeof(neighbour->bytes));
		return 0;
	}
	for (change = 1; change <= mask; change++) {
		last = (uint8_t)(addr->bytes[bits / 8 - 1] ^ change);
		host = last & mask;
		if ((has_ends && (!host || host == mask)) || number--)
			continue;
		*neighbour = *addr;
		neighbour->bytes[bits / 8 - 1] = last;
		neighbour->scope_id = 0;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int check_ipv4_setting(const struct mesh_sysfs *files, const char *netdev, const char *name)
{
	uint64_t all, own;

	if (mesh_sysfs_read_number(files, 255, &all, "proc/sys/net/ipv4/conf/all/%s", name) ||
	    mesh_sysfs_read_number(files, 255, &own, "proc/sys/net/ipv4/conf/%s/%s", netdev, name))
		return -1;
	return (int)(all > own ? all : own);
}
