/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - the table of checks. */
#ifndef MESH_FI_UTILS_CHECK_CHECKS_H
#define MESH_FI_UTILS_CHECK_CHECKS_H

#include "check/context.h"
#include "common/finding.h"

struct check {
	const char *id; /* stable: scripts and docs name it */
	const char *title;
	void (*run)(const struct check_context *context, struct check_result *result);
};

/** The table, in the order of their output; ended by an id of NULL. */
extern const struct check checks[];

#endif
