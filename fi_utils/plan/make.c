/* SPDX-License-Identifier: Apache-2.0 */
/* make.c - makes a plan: checks the request, assigns the addresses, orders the ranks. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "common/output.h"
#include "common/subnet.h"
#include "nic/addr.h"
#include "plan/cable_list.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"

/* ---- addresses that the list of cables has ---------------------------------------------- */

/* Cables with addresses of their own that a list may have: each is compared with all others. */
#define MESH_PLAN_KEPT_MAX 1000

static bool is_kept(const struct mesh_listed_cable *cable)
{
	return cable->ends[0].addr.family != MESH_FAMILY_NONE;
}

/* The first of the kept cables below @num whose subnet overlaps @addr's, or -1. */
static int overlap_find(const struct mesh_cable_list *list, const int *kept, int num,
			const struct mesh_addr *addr)
{
	int i;

	for (i = 0; i < num; i++)
		if (mesh_subnet_compare(&list->cables[kept[i]].ends[0].addr, addr) !=
		    MESH_SUBNET_APART)
			return kept[i];
	return -1;
}

/* Lists the kept cables in @kept; returns how many, or a negative errno. */
static int kept_find(const struct mesh_cable_list *list, int *kept)
{
	char text[2][MESH_ADDR_TEXT_MAX];
	int i, other, num = 0;

	for (i = 0; i < list->num_cables; i++) {
		const struct mesh_addr *addr = &list->cables[i].ends[0].addr;

		if (!is_kept(&list->cables[i]))
			continue;
		other = overlap_find(list, kept, num, addr);
		if (other >= 0) {
			mesh_warn("two cables have addresses of one subnet: %s and %s",
				  mesh_addr_text_prefix(&list->cables[other].ends[0].addr, text[0]),
				  mesh_addr_text_prefix(addr, text[1]));
			return -EINVAL;
		}
		if (num == MESH_PLAN_KEPT_MAX) {
			mesh_warn("more than %d cables with addresses", MESH_PLAN_KEPT_MAX);
			return -E2BIG;
		}
		kept[num++] = i;
	}
	return num;
}

/* Copies the addresses of a line. The plan may have the two ends in the other order. */
static void kept_copy(const struct mesh_listed_cable *cable, int number, struct mesh_plan *plan)
{
	int swapped = strcmp(cable->ends[0].node, mesh_plan_node_name(plan, number, 0)) != 0;

	plan->addresses[number][0] = cable->ends[swapped].addr;
	plan->addresses[number][1] = cable->ends[!swapped].addr;
}

static int addresses_fill(const struct mesh_cable_list *list, const int *kept, int num,
			  struct mesh_plan *plan)
{
	uint64_t next = 0, count = mesh_subnets_count(&plan->subnets);
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr subnet;
	int i, end;

	for (i = 0; i < list->num_cables; i++) {
		if (is_kept(&list->cables[i])) {
			kept_copy(&list->cables[i], i, plan);
			continue;
		}
		do {
			if (next == count) {
				mesh_warn(
					"%s has too few subnets of /%d besides those of the list's "
					"addresses: try a larger --range",
					mesh_addr_text_prefix(&plan->subnets.first, text),
					plan->subnets.prefix_len);
				return -ENOSPC;
			}
			subnet = mesh_subnets_get(&plan->subnets, next++);
		} while (overlap_find(list, kept, num, &subnet) >= 0);
		for (end = 0; end < 2; end++)
			plan->addresses[i][end] = mesh_subnet_host(&subnet, end);
	}
	return 0;
}

/*
 * Takes the addresses that @list has into @plan, whose cables are those of the list, in its order,
 * and gives the others the next subnets that overlap none of them. A list without addresses
 * changes nothing.
 *
 * Returns 0; -EINVAL (logged): two cables of the list have overlapping subnets; -E2BIG (logged):
 * more than MESH_PLAN_KEPT_MAX of them; -ENOSPC (logged): the range has too few other subnets;
 * -ENOMEM.
 */
static int mesh_plan_addresses_keep(const struct mesh_cable_list *list, struct mesh_plan *plan)
{
	int *kept = calloc(MESH_PLAN_KEPT_MAX, sizeof(*kept));
	int num, ret = -ENOMEM;

	if (!kept)
		return ret;
	num = ret = kept_find(list, kept);
	if (num > 0) {
		plan->addresses = calloc((size_t)list->num_cables, sizeof(*plan->addresses));
		ret = plan->addresses ? addresses_fill(list, kept, num, plan) : -ENOMEM;
	}
	free(kept);
	return ret;
}

/* IPv4 needs at least 68 bytes (RFC 791); 65535 is the largest packet. */
enum {
	MTU_MIN = 1280,
	MTU_MAX = 65520
};

/* ---- addresses -------------------------------------------------------------------------- */

/* Prefix lengths to try for one range, the largest subnets first; ended by 0. */
static const int prefixes_ipv4[] = {24, 30, 0}, prefixes_ipv6[] = {64, 127, 0};

/* True if @range has a subnet for each cable. Logs nothing. */
static bool range_holds(struct mesh_addr range, int prefix_len, int num_cables,
			struct mesh_subnets *subnets)
{
	*subnets = (struct mesh_subnets){range, (uint8_t)prefix_len};
	return prefix_len >= range.prefix_len &&
	       mesh_subnets_count(subnets) >= (uint64_t)num_cables;
}

/* Logs how many subnets the range has, and which prefix or range would be enough. */
static int range_refuse(struct mesh_addr range, int prefix_len, int num_cables)
{
	struct mesh_subnets subnets = {range, (uint8_t)prefix_len};
	int longest = range.family == MESH_FAMILY_IPV4 ? 30 : 127;
	char text[MESH_ADDR_TEXT_MAX];

	mesh_addr_text_prefix(&range, text);
	if (prefix_len < longest && range_holds(range, longest, num_cables, &subnets)) {
		subnets.prefix_len = (uint8_t)prefix_len;
		mesh_warn("%d cables need as many subnets; %s has %" PRIu64
			  " of /%d: try --prefix %d or a larger --range",
			  num_cables, text, mesh_subnets_count(&subnets), prefix_len, longest);
		return -ENOSPC;
	}
	subnets.prefix_len = (uint8_t)prefix_len;
	mesh_warn("%d cables need as many subnets; %s has %" PRIu64
		  " of /%d: try a larger --range, such as %s",
		  num_cables, text, mesh_subnets_count(&subnets), prefix_len,
		  range.family == MESH_FAMILY_IPV4 ? "10.0.0.0/8" : "fd00::/32");
	return -ENOSPC;
}

/* Cuts the range that the user gave into subnets, if it has enough of them. */
static int range_cut(const struct mesh_plan_request *request, int num_cables,
		     struct mesh_subnets *subnets)
{
	const int *prefix = request->range.family == MESH_FAMILY_IPV4 ? prefixes_ipv4
								      : prefixes_ipv6;
	int prefix_len = request->prefix_len;

	for (; !request->prefix_len && *prefix; prefix++) {
		prefix_len = *prefix;
		if (range_holds(request->range, prefix_len, num_cables, subnets))
			break;
	}
	*subnets = (struct mesh_subnets){request->range, (uint8_t)prefix_len};
	if (prefix_len > 128 || mesh_subnets_check(subnets))
		return -EINVAL;
	if (!range_holds(request->range, prefix_len, num_cables, subnets))
		return range_refuse(request->range, prefix_len, num_cables);
	return 0;
}

/* The names of all nodes are the seed of a range that no other mesh uses. */
static struct mesh_addr ula_of(const struct mesh_plan_request *request)
{
	char seed[256] = "";
	int i;

	for (i = 0; i < request->num_nodes; i++)
		output_add(seed, sizeof(seed), "%s ", request->nodes[i].name);
	return mesh_subnet_ula(seed);
}

static int subnets_choose(const struct mesh_plan_request *request, int num_cables,
			  struct mesh_subnets *subnets)
{
	struct mesh_plan_request with_range = *request;

	if (request->range.family == MESH_FAMILY_NONE) {
		if (request->ipv6) {
			with_range.range = ula_of(request);
			return range_cut(&with_range, num_cables, subnets);
		}
		mesh_addr_parse("192.168.100.0/16", &with_range.range);
		with_range.prefix_len = request->prefix_len ? request->prefix_len : 30;
		if (!range_holds(with_range.range, with_range.prefix_len, num_cables, subnets))
			mesh_addr_parse("10.0.0.0/8", &with_range.range);
		with_range.prefix_len = request->prefix_len;
	}
	return range_cut(&with_range, num_cables, subnets);
}

/* ---- the plan --------------------------------------------------------------------------- */

static int values_check(const struct mesh_plan_request *request)
{
	if (request->mtu && (request->mtu < MTU_MIN || request->mtu > MTU_MAX)) {
		mesh_warn("an MTU is %d to %d bytes, not %d", MTU_MIN, MTU_MAX, request->mtu);
		return -EINVAL;
	}
	return 0;
}

/* Numbers the sites by the order of their first nodes. */
static int sites_number(struct mesh_plan *plan)
{
	int i, k;

	plan->sites = calloc((size_t)plan->topology.num_nodes, sizeof(*plan->sites));
	if (!plan->sites)
		return -ENOMEM;
	for (i = 0; i < plan->topology.num_nodes; i++) {
		for (k = 0; k < i && strcmp(plan->nodes[k].site, plan->nodes[i].site); k++)
			;
		plan->sites[i] = k < i ? plan->sites[k] : plan->num_sites++;
	}
	return 0;
}

/* The node that stands for all nodes that are joined with this one. */
static int part_of(const int *joined, int node)
{
	while (joined[node] != node)
		node = joined[node];
	return node;
}

/* Returns 1 if the two were not joined before, else 0. */
static int parts_join(int *joined, int a, int b)
{
	int part = part_of(joined, a), other = part_of(joined, b);

	joined[part > other ? part : other] = part < other ? part : other;
	return part != other;
}

/*
 * Every node must be reachable over cables from the other nodes of its site; routers may join the
 * first nodes of all sites.
 */
static int connection_check(const struct mesh_plan *plan)
{
	const struct mesh_topology *topology = &plan->topology;
	int *joined = calloc((size_t)topology->num_nodes, sizeof(*joined));
	int i, site = 0, parts = topology->num_nodes;

	if (!joined)
		return -ENOMEM;
	for (i = 0; i < topology->num_nodes; i++)
		joined[i] = i;
	for (i = 0; i < topology->num_cables; i++)
		parts -= parts_join(joined, topology->cables[i].ends[0].node,
				    topology->cables[i].ends[1].node);
	for (i = 0; i < topology->num_nodes; i++) {
		if (plan->sites[i] <= site)
			continue;
		site = plan->sites[i];
		parts -= parts_join(joined, 0, i);
	}
	free(joined);
	if (parts == 1)
		return 0;
	mesh_warn("the cables form %d separate parts: add a cable from each part to another",
		  parts);
	return -EINVAL;
}

static int order_find(struct mesh_plan *plan)
{
	int num = plan->topology.num_nodes, ret;
	int *hint;

	if (plan->num_sites > 1)
		return mesh_site_order_find(&plan->topology, plan->sites, plan->num_sites,
					    &plan->order);
	hint = calloc((size_t)num, sizeof(*hint));
	if (!hint)
		return -ENOMEM;
	ret = mesh_shape_order(&plan->shape, num, hint);
	if (ret != -ENOMEM)
		ret = mesh_rank_order_find(&plan->topology, ret ? NULL : hint, &plan->order);
	free(hint);
	return ret;
}

static bool ports_all_named(const struct mesh_plan *plan)
{
	int i;

	for (i = 0; i < plan->topology.num_nodes; i++)
		if (!plan->nodes[i].ports_named)
			return false;
	return true;
}

int mesh_plan_make(struct mesh_plan_request *request, struct mesh_plan *plan)
{
	struct mesh_plan result = {
		.shape = request->shape,
		.infiniband = request->infiniband,
		.mtu = request->mtu,
		.rate_mbps = request->rate_mbps,
		.halves = request->halves ? request->halves : 1,
	};
	int ret = values_check(request);

	if (!ret)
		ret = mesh_plan_cables_make(request, &result);
	if (!ret)
		ret = subnets_choose(request, result.topology.num_cables, &result.subnets);
	result.nodes = request->nodes;
	result.topology.num_nodes = request->num_nodes;
	request->nodes = NULL;
	if (!ret && request->cables)
		ret = mesh_plan_addresses_keep(request->cables, &result);
	if (!result.mtu)
		result.mtu = result.infiniband ? MESH_PLAN_MTU_INFINIBAND : MESH_PLAN_MTU_ETHERNET;
	if (!ret)
		ret = sites_number(&result);
	if (!ret)
		ret = connection_check(&result);
	if (!ret)
		ret = order_find(&result);
	if (request->management)
		snprintf(result.management, sizeof(result.management), "%s", request->management);
	if (ret) {
		mesh_plan_free(&result);
		return ret;
	}
	result.ports_named = ports_all_named(&result);
	*plan = result;
	return 0;
}
