/* SPDX-License-Identifier: Apache-2.0 */
/* nic.h - checks of single NICs: carrier, speed, MTU, PCIe link. */
#ifndef MESH_FI_UTILS_CHECK_NIC_H
#define MESH_FI_UTILS_CHECK_NIC_H

#include "check/context.h"
#include "common/finding.h"

void check_carrier(const struct check_context *context, struct check_result *result);
void check_speed(const struct check_context *context, struct check_result *result);
void check_mtu(const struct check_context *context, struct check_result *result);
void check_pcie(const struct check_context *context, struct check_result *result);

#endif
