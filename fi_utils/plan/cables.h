/* SPDX-License-Identifier: Apache-2.0 */
/* cables.h - assigns the cables of a plan to ports. */
#ifndef MESH_FI_UTILS_PLAN_CABLES_H
#define MESH_FI_UTILS_PLAN_CABLES_H

#include "plan/plan.h"

/**
 * Makes the cables of @request, and names the ports that have no name yet.
 *
 * Returns 0, and @plan->topology is made; -EINVAL; -ENOSPC: a node has too few ports (logged, with
 * the shapes that fit); -ENOMEM.
 */
int mesh_plan_cables_make(struct mesh_plan_request *request, struct mesh_plan *plan);

#endif
