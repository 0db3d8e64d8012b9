/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.h - parses values of options and operands. */
#ifndef MESH_FI_UTILS_COMMON_ARGUMENTS_H
#define MESH_FI_UTILS_COMMON_ARGUMENTS_H

#include <stdbool.h>

/* @who, here and below: the beginning of each message, "fi_mesh plan". */

/** Reports a usage error. Returns COMMAND_MISUSE. */
int arguments_misuse(const char *who, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Reads a whole decimal number from @min to @max; false, and no change, for anything else. */
bool argument_number(const char *text, unsigned long min, unsigned long max, unsigned long *number);

/** True if @path is a folder; else it is reported. */
bool argument_is_folder(const char *who, const char *path);

#endif
