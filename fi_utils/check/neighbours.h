/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.h - checks what is at the other end of each mesh NIC, as far as it answers. */
#ifndef MESH_FI_UTILS_CHECK_NEIGHBOURS_H
#define MESH_FI_UTILS_CHECK_NEIGHBOURS_H

#include "check/context.h"
#include "common/finding.h"

void check_neighbours(const struct check_context *context, struct check_result *result);

#endif
