/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric.h - asks libfabric for each NIC as the plugin does. */
#ifndef MESH_FI_UTILS_CHECK_LIBFABRIC_H
#define MESH_FI_UTILS_CHECK_LIBFABRIC_H

#include "check/context.h"
#include "common/finding.h"

void check_libfabric(const struct check_context *context, struct check_result *result);

#endif
