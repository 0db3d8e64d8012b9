/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - a plan for people. */
#ifndef MESH_FI_UTILS_PLAN_PRINT_H
#define MESH_FI_UTILS_PLAN_PRINT_H

#include <stdio.h>

#include "plan/plan.h"

/** The plan for people. */
void plan_print(FILE *file, const struct mesh_plan *plan);

#endif
