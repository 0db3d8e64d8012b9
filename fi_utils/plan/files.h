/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - the configuration files of a plan, printed or written into a folder. */
#ifndef MESH_FI_UTILS_PLAN_FILES_H
#define MESH_FI_UTILS_PLAN_FILES_H

#include <stdio.h>

#include "plan/formats.h"
#include "plan/plan.h"

/** Prints the files of one node, each after a comment with its path. */
void plan_files_print(FILE *file, const struct mesh_plan *plan, const struct plan_ports *ports,
		      const struct plan_format *format, int node);

/**
 * Writes plan.json and NODE/FORMAT/PATH into @folder, which must be empty or not exist. After an
 * error or Ctrl-C it is removed again.
 *
 * @format: NULL for all
 *
 * Returns 0 or a negative errno (reported).
 */
int plan_files_write(const char *folder, const struct mesh_plan *plan,
		     const struct plan_ports *ports, const struct plan_format *format);

#endif
