/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - checks of RDMA ports: state, subnet manager, GIDs. */
#ifndef MESH_FI_UTILS_CHECK_PORTS_H
#define MESH_FI_UTILS_CHECK_PORTS_H

#include "check/context.h"
#include "common/finding.h"

void check_ports(const struct check_context *context, struct check_result *result);
void check_gids(const struct check_context *context, struct check_result *result);

#endif
