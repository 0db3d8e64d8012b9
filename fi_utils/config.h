/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - what `fi_mesh config` prints, for its test. */
#ifndef MESH_FI_UTILS_CONFIG_H
#define MESH_FI_UTILS_CONFIG_H

#include <stdio.h>

/** The settings reference, docs/settings.md, from mesh_settings. */
void config_print_markdown(FILE *file);

/** @text in lines of at most 100 columns behind @indent, broken at blanks. */
void config_print_wrapped(FILE *file, const char *text, const char *indent);

#endif
