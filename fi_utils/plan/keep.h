/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - a plan for a mesh of which some cables have addresses already. */
#ifndef MESH_FI_UTILS_PLAN_KEEP_H
#define MESH_FI_UTILS_PLAN_KEEP_H

#include "plan/cable_list.h"
#include "plan/plan.h"

/* Cables with addresses of their own that a list may have: each is compared with all others. */
#define MESH_PLAN_KEPT_MAX 1000

/**
 * Takes the addresses that @list has into @plan, whose cables are those of the list, in its order,
 * and gives the others the next subnets that overlap none of them. A list without addresses
 * changes nothing.
 *
 * Returns 0; -EINVAL (logged): two cables of the list have overlapping subnets; -E2BIG (logged):
 * more than MESH_PLAN_KEPT_MAX of them; -ENOSPC (logged): the range has too few other subnets;
 * -ENOMEM.
 */
int mesh_plan_addresses_keep(const struct mesh_cable_list *list, struct mesh_plan *plan);

#endif
