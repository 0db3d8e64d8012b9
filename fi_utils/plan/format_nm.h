/* SPDX-License-Identifier: Apache-2.0 */
/* format_nm.h - NetworkManager's keyfiles. */
#ifndef MESH_FI_UTILS_PLAN_FORMAT_NM_H
#define MESH_FI_UTILS_PLAN_FORMAT_NM_H

#include "plan/format.h"

extern const struct plan_format plan_format_nm;

#endif
