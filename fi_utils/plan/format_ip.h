/* SPDX-License-Identifier: Apache-2.0 */
/* format_ip.h - plain `ip` commands. */
#ifndef MESH_FI_UTILS_PLAN_FORMAT_IP_H
#define MESH_FI_UTILS_PLAN_FORMAT_IP_H

#include "plan/format.h"

extern const struct plan_format plan_format_ip;

#endif
