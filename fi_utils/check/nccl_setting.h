/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_setting.h - NCCL's settings as NCCL would see them. */
#ifndef MESH_FI_UTILS_CHECK_NCCL_SETTING_H
#define MESH_FI_UTILS_CHECK_NCCL_SETTING_H

#include <stdbool.h>

#include "system/sysfs.h"

#define NCCL_SETTING_MAX 4096

struct nccl_setting {
	char value[NCCL_SETTING_MAX];
	char origin[300]; /* "the environment", "/etc/nccl.conf" */
};

/**
 * Looks as NCCL does (src/misc/param.cc): the environment first, then the user's file
 * (NCCL_CONF_FILE, or .nccl.conf in the home folder), then /etc/nccl.conf.
 *
 * @files: opened at "/" or at a recorded tree
 *
 * Returns true if it is set, even if to nothing.
 */
bool nccl_setting_find(const struct mesh_sysfs *files, const char *name,
		       struct nccl_setting *setting);

/** Finds "NAME=VALUE" in a file's text; false if it is not there or too long. */
bool nccl_conf_find(const char *text, const char *name, char *value, size_t size);

#endif
