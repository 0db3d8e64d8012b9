/* SPDX-License-Identifier: Apache-2.0 */
/* shared_subnet.h - checks the kernel settings that one subnet on two NICs needs. */
#ifndef MESH_FI_UTILS_CHECK_SHARED_SUBNET_H
#define MESH_FI_UTILS_CHECK_SHARED_SUBNET_H

#include "check/context.h"
#include "common/finding.h"

void check_shared_subnet(const struct check_context *context, struct check_result *result);

#endif
