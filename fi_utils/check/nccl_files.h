/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_files.h - what NCCL's configuration files set, and which value wins. */
#ifndef MESH_FI_UTILS_CHECK_NCCL_FILES_H
#define MESH_FI_UTILS_CHECK_NCCL_FILES_H

#include <stdbool.h>

#include "check/context.h"
#include "common/finding.h"

/**
 * Adds a finding for each line that sets a variable NCCL_*: whether it is the one that counts, and
 * what is wrong with it.
 *
 * @is_rccl: look at RCCL's files
 */
void nccl_files_judge(const struct check_context *context, bool is_rccl,
		      struct check_result *result);

#endif
