/* SPDX-License-Identifier: Apache-2.0 */
/* firewall.h - checks that no firewall rule drops the ports of the mesh. */
#ifndef MESH_FI_UTILS_CHECK_FIREWALL_H
#define MESH_FI_UTILS_CHECK_FIREWALL_H

#include "check/context.h"
#include "common/finding.h"

void check_firewall(const struct check_context *context, struct check_result *result);

#endif
