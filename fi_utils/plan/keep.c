/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - a plan for a mesh of which some cables have addresses already. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "common/subnet.h"
#include "nic/addr.h"
#include "plan/keep.h"
#include "plan/subnet_range.h"

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
				mesh_warn("%s has too few subnets of /%d beside those of the "
					  "addresses in the list: try a larger --range",
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

int mesh_plan_addresses_keep(const struct mesh_cable_list *list, struct mesh_plan *plan)
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
