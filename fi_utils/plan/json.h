/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - a plan as JSON. */
#ifndef MESH_FI_UTILS_PLAN_JSON_H
#define MESH_FI_UTILS_PLAN_JSON_H

#include <jansson.h>

#include "plan/plan.h"

/** The plan as JSON (docs/fi_mesh-json.md); NULL without memory. */
json_t *plan_json(const struct mesh_plan *plan);

#endif
