/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the variables that NCCL needs in a planned mesh, and what the rank order is
 * worth.
 */
#ifndef MESH_FI_UTILS_PLAN_ENVIRONMENT_H
#define MESH_FI_UTILS_PLAN_ENVIRONMENT_H

#include <stddef.h>

#include "plan/plan.h"

/* A variable of the environment, and why it has to be there. */
struct plan_variable {
	const char *name;
	char *value; /* owned */
	const char *why;
};

#define PLAN_VARIABLES_MAX 5

/** The environment for NCCL: as little as possible. Returns how many, or -ENOMEM. */
int plan_environment(const struct mesh_plan *plan, struct plan_variable *variables);

void plan_environment_free(struct plan_variable *variables, int num);

/** What the rank order is worth, in one or two sentences, into @text; returned. */
const char *plan_order_text(const struct mesh_plan *plan, char *text, size_t size);

#endif
