/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - checks that NCCL, as it is set up here, loads the plugin. */
#ifndef MESH_FI_UTILS_CHECK_NCCL_H
#define MESH_FI_UTILS_CHECK_NCCL_H

#include "check/context.h"
#include "common/finding.h"

void check_environment(const struct check_context *context, struct check_result *result);
void check_plugin(const struct check_context *context, struct check_result *result);

#endif
