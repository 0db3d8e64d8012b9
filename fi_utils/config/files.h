/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - settings of the plugin in the files that NCCL reads. */
#ifndef MESH_FI_UTILS_CONFIG_FILES_H
#define MESH_FI_UTILS_CONFIG_FILES_H

/**
 * Puts the lines NCCL_MESH_... of NCCL's files into this process's environment, as NCCL does it in
 * a program: a variable that is set already stays, and the first line that names it counts.
 *
 * Returns 0 or a negative errno; a file that cannot be read counts as missing.
 */
int config_files_take(void);

/** "the environment", or "FILE, line N" where config_files_take() found it; NULL: not set. */
const char *config_origin(const char *name);

#endif
