/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the variables that NCCL needs in a planned mesh, and how well the rank order
 * follows the cables.
 */
#ifndef MESH_FI_UTILS_PLAN_ENVIRONMENT_H
#define MESH_FI_UTILS_PLAN_ENVIRONMENT_H

#include <stddef.h>

#include "plan/plan.h"

/* An environment variable, and why it is needed. */
struct plan_variable {
	const char *name;
	char *value; /* owned */
	const char *why;
};

#define PLAN_VARIABLES_MAX 5

/** The environment for NCCL: as few variables as possible. Returns how many, or -ENOMEM. */
int plan_environment(const struct mesh_plan *plan, struct plan_variable *variables);

void plan_environment_free(struct plan_variable *variables, int num);

/**
 * Writes how well the rank order follows the cables into @text, one or two sentences; returns
 * @text.
 */
const char *plan_order_text(const struct mesh_plan *plan, char *text, size_t size);

#endif
