/* SPDX-License-Identifier: Apache-2.0 */
/* format_networkd.h - systemd-networkd's files. */
#ifndef MESH_FI_UTILS_PLAN_FORMAT_NETWORKD_H
#define MESH_FI_UTILS_PLAN_FORMAT_NETWORKD_H

#include "plan/format.h"

extern const struct plan_format plan_format_networkd;

#endif
