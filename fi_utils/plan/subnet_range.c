/* SPDX-License-Identifier: Apache-2.0 */
/* subnet_range.c - cuts a range of addresses into subnets, one for each cable. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "nic/addr.h"
#include "plan/subnet_range.h"

/* An address as a number, IPv4 in the low 32 bits. */
__extension__ typedef unsigned __int128 number;

static unsigned int width(const struct mesh_addr *addr)
{
	return 8 * (unsigned int)mesh_addr_size(addr->family);
}

static number addr_number(const struct mesh_addr *addr)
{
	number value = 0;
	size_t i;

	for (i = 0; i < mesh_addr_size(addr->family); i++)
		value = value << 8 | addr->bytes[i];
	return value;
}

static struct mesh_addr number_addr(number value, enum mesh_family family, unsigned int prefix_len)
{
	struct mesh_addr addr = {.family = family, .prefix_len = (uint8_t)prefix_len};
	size_t i, size = mesh_addr_size(family);

	for (i = 0; i < size; i++)
		addr.bytes[i] = (uint8_t)(value >> 8 * (size - 1 - i));
	return addr;
}

/* A mask of the host part; it is never the whole address. */
static number host_mask(const struct mesh_addr *addr, unsigned int prefix_len)
{
	unsigned int bits = width(addr) - prefix_len;

	return bits >= 128 ? ~(number)0 : ((number)1 << bits) - 1;
}

/* Addresses that no host can have, or that cannot reach another host. */
static bool unfit(const struct mesh_addr *addr)
{
	if (mesh_addr_is_loopback(addr) || mesh_addr_is_link_local(addr))
		return true;
	if (addr->family == MESH_FAMILY_IPV4) /* 0/8; multicast and reserved, 224/3 */
		return addr->bytes[0] == 0 || addr->bytes[0] >= 224;
	return addr->bytes[0] == 0 || addr->bytes[0] == 0xff; /* ::/8, multicast */
}

int mesh_subnets_check(const struct mesh_subnets *subnets)
{
	const struct mesh_addr *first = &subnets->first;
	unsigned int prefix_len = subnets->prefix_len;
	char text[MESH_ADDR_TEXT_MAX];

	mesh_addr_text_prefix(first, text);
	if (first->family == MESH_FAMILY_NONE || first->prefix_len > width(first)) {
		mesh_warn("there is no range of addresses");
		return -EINVAL;
	}
	if (!prefix_len || prefix_len < first->prefix_len || prefix_len + 1 > width(first)) {
		mesh_warn("%s has no subnets of /%u for two nodes each: /%u to /%u fit", text,
			  prefix_len, first->prefix_len ? first->prefix_len : 1u, width(first) - 1);
		return -EINVAL;
	}
	if (addr_number(first) & host_mask(first, prefix_len)) {
		mesh_warn("%s is not the start of a subnet of /%u", text, prefix_len);
		return -EINVAL;
	}
	if (unfit(first)) {
		mesh_warn("%s is not for hosts; 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and "
			  "fd00::/8 are for private networks",
			  text);
		return -EINVAL;
	}
	return 0;
}

uint64_t mesh_subnets_count(const struct mesh_subnets *subnets)
{
	const struct mesh_addr *first = &subnets->first;
	number start = addr_number(first), last = start | host_mask(first, first->prefix_len);
	number count = (last - start) >> (width(first) - subnets->prefix_len);

	return count >= UINT64_MAX ? UINT64_MAX : (uint64_t)count + 1;
}

struct mesh_addr mesh_subnets_get(const struct mesh_subnets *subnets, uint64_t index)
{
	const struct mesh_addr *first = &subnets->first;
	number value = addr_number(first) + ((number)index << (width(first) - subnets->prefix_len));

	return number_addr(value, first->family, subnets->prefix_len);
}

struct mesh_addr mesh_subnet_host(const struct mesh_addr *subnet, int host)
{
	unsigned int first = subnet->prefix_len + 1u >= width(subnet) ? 0 : 1;

	return number_addr(addr_number(subnet) + first + (unsigned int)host, subnet->family,
			   subnet->prefix_len);
}

struct mesh_addr mesh_subnet_ula(const char *seed)
{
	struct mesh_addr range = {.family = MESH_FAMILY_IPV6, .prefix_len = 48, .bytes = {0xfd}};
	uint32_t low = mesh_checksum(seed, strlen(seed));
	uint8_t high = (uint8_t)mesh_checksum(&low, sizeof(low));
	int i;

	/* RFC 4193, 3.2: 40 bits, for which any hash suffices. */
	range.bytes[1] = high;
	for (i = 0; i < 4; i++)
		range.bytes[2 + i] = (uint8_t)(low >> (24 - 8 * i));
	return range;
}
