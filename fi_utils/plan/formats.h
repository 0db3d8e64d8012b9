/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - all formats of configuration files. */
#ifndef MESH_FI_UTILS_PLAN_FORMATS_H
#define MESH_FI_UTILS_PLAN_FORMATS_H

#include "plan/format.h"

/** All formats, ended by NULL. */
extern const struct plan_format *const plan_formats[];

/** The format of this name, or NULL. */
const struct plan_format *plan_format_find(const char *name);

#endif
