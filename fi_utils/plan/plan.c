/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a mesh before it is built: cables, subnets, addresses, and the order of ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/log.h"
#include "common/subnet.h"
#include "nic/addr.h"
#include "plan/cable_list.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/topology.h"

void mesh_plan_nodes_free(struct mesh_plan_node *nodes, int num_nodes)
{
	int i;

	for (i = 0; nodes && i < num_nodes; i++)
		free(nodes[i].ports);
	free(nodes);
}

void mesh_plan_free(struct mesh_plan *plan)
{
	mesh_plan_nodes_free(plan->nodes, plan->topology.num_nodes);
	mesh_topology_free(&plan->topology);
	mesh_rank_order_free(&plan->order);
	free(plan->addresses);
	free(plan->sites);
	memset(plan, 0, sizeof(*plan));
}

int mesh_plan_port_add(struct mesh_plan_node *node, const char *name)
{
	char(*ports)[IF_NAMESIZE];
	int i;

	if (!mesh_port_name_valid(name)) {
		mesh_warn("%s: \"%.40s\" is not a valid interface name", node->name, name);
		return -EINVAL;
	}
	for (i = 0; i < node->num_ports; i++) {
		if (strcmp(node->ports[i], name))
			continue;
		mesh_warn("%s: port %s is named twice", node->name, name);
		return -EINVAL;
	}
	if (node->num_ports == MESH_PLAN_PORTS_MAX) {
		mesh_warn("%s: more than %d ports", node->name, MESH_PLAN_PORTS_MAX);
		return -EINVAL;
	}
	ports = realloc(node->ports, ((size_t)node->num_ports + 1) * sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	snprintf(ports[node->num_ports++], IF_NAMESIZE, "%s", name);
	node->ports = ports;
	return 0;
}

struct mesh_addr mesh_plan_addr(const struct mesh_plan *plan, int cable, int end)
{
	struct mesh_addr subnet;

	if (plan->addresses)
		return plan->addresses[cable][end];
	subnet = mesh_subnets_get(&plan->subnets, (uint64_t)cable);
	return mesh_subnet_host(&subnet, end);
}

struct mesh_addr mesh_plan_subnet(const struct mesh_plan *plan, int cable)
{
	if (plan->addresses)
		return mesh_subnet_of(&plan->addresses[cable][0]);
	return mesh_subnets_get(&plan->subnets, (uint64_t)cable);
}

const char *mesh_plan_node_name(const struct mesh_plan *plan, int cable, int end)
{
	return plan->nodes[plan->topology.cables[cable].ends[end].node].name;
}

const char *mesh_plan_port_name(const struct mesh_plan *plan, int cable, int end)
{
	const struct mesh_cable_end *at = &plan->topology.cables[cable].ends[end];

	return plan->nodes[at->node].ports[at->port];
}

const char *mesh_plan_cable_text(const struct mesh_plan *plan, int cable, char *text)
{
	if (plan->halves > 1)
		snprintf(text, MESH_PLAN_CABLE_TEXT_MAX, "%d.%d", cable / plan->halves + 1,
			 cable % plan->halves + 1);
	else
		snprintf(text, MESH_PLAN_CABLE_TEXT_MAX, "%d", cable + 1);
	return text;
}

int mesh_plan_site_crossings(const struct mesh_plan *plan)
{
	int num = plan->topology.num_nodes, rank, crossings = 0;

	for (rank = 0; rank < num; rank++)
		crossings += plan->sites[plan->order.nodes[rank]] !=
			     plan->sites[plan->order.nodes[(rank + 1) % num]];
	return crossings;
}

int64_t mesh_plan_pairs_apart(const struct mesh_plan *plan)
{
	int64_t num = plan->topology.num_nodes, apart = num * (num - 1) / 2;
	struct mesh_neighbours neighbours;
	int node, i, k;

	if (mesh_neighbours_load(&plan->topology, &neighbours))
		return -1;
	for (node = 0; node < num; node++) {
		for (i = neighbours.first[node]; i < neighbours.first[node + 1]; i++) {
			for (k = neighbours.first[node]; k < i; k++)
				if (neighbours.nodes[k] == neighbours.nodes[i])
					break;
			/* Each joined pair once, however many cables join it. */
			apart -= k == i && neighbours.nodes[i] > node;
		}
	}
	mesh_neighbours_free(&neighbours);
	return apart;
}

/* ---- subnets ---------------------------------------------------------------------------- */

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
