/* SPDX-License-Identifier: Apache-2.0 */
/* old_settings.h - settings of nccl-mesh-plugin, whose prefix is the same, and what to use now. */
#ifndef MESH_FI_UTILS_CHECK_OLD_SETTINGS_H
#define MESH_FI_UTILS_CHECK_OLD_SETTINGS_H

#include <stdbool.h>

#include "check/context.h"
#include "common/finding.h"

/** Reports each that the environment or a configuration file still has. */
void check_old_settings(const struct check_context *context, bool is_rccl,
			struct check_result *result);

#endif
