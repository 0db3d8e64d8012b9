/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.h - checks the TCP settings of the kernel that matter on a direct cable. */
#ifndef MESH_FI_UTILS_CHECK_TCP_H
#define MESH_FI_UTILS_CHECK_TCP_H

#include "check/context.h"
#include "common/finding.h"

void check_congestion(const struct check_context *context, struct check_result *result);

#endif
