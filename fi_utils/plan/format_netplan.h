/* SPDX-License-Identifier: Apache-2.0 */
/* format_netplan.h - netplan's YAML. */
#ifndef MESH_FI_UTILS_PLAN_FORMAT_NETPLAN_H
#define MESH_FI_UTILS_PLAN_FORMAT_NETPLAN_H

#include "plan/format.h"

extern const struct plan_format plan_format_netplan;

#endif
