/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the settings and their values: as text, as JSON, and as docs/settings.md. */
#ifndef MESH_FI_UTILS_CONFIG_PRINT_H
#define MESH_FI_UTILS_CONFIG_PRINT_H

#include <stdio.h>

#include "base/config.h"

/**
 * Puts the lines NCCL_MESH_... of NCCL's files into this process's environment, as NCCL does it in
 * a program: a variable that is set already stays, and the first line that names it counts. What
 * is printed has where each comes from.
 *
 * Returns 0 or a negative errno; a file that cannot be read counts as missing.
 */
int config_files_take(void);

/** The settings with the values of @config, for people. */
void config_print(FILE *file, const struct mesh_config *config);

/** The same for programs. Returns 0, or -1 (reported). */
int config_print_json(const char *who, FILE *file, const struct mesh_config *config);

/** The settings reference, docs/settings.md, from mesh_settings. */
void config_print_markdown(FILE *file);

/** @text in lines of at most 100 columns behind @indent, broken at blanks. */
void config_print_wrapped(FILE *file, const char *text, const char *indent);

#endif
