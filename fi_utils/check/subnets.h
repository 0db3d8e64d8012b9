/* SPDX-License-Identifier: Apache-2.0 */
/* subnets.h - checks that each NIC has a subnet of its own. */
#ifndef MESH_FI_UTILS_CHECK_SUBNETS_H
#define MESH_FI_UTILS_CHECK_SUBNETS_H

#include "check/context.h"
#include "common/finding.h"

void check_subnets(const struct check_context *context, struct check_result *result);

#endif
