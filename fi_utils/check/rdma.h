/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.h - what RDMA needs of the system: modules, device files, locked memory. */
#ifndef MESH_FI_UTILS_CHECK_RDMA_H
#define MESH_FI_UTILS_CHECK_RDMA_H

#include "check/context.h"
#include "common/finding.h"

void check_modules(const struct check_context *context, struct check_result *result);
void check_device_files(const struct check_context *context, struct check_result *result);
void check_memlock(const struct check_context *context, struct check_result *result);

#endif
