/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.h - what several subcommands ask of the values that they are given. */
#ifndef MESH_FI_UTILS_COMMON_ARGUMENTS_H
#define MESH_FI_UTILS_COMMON_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* @who, here and below: the beginning of each message, "fi_mesh plan". */

/** Says what is wrong, and @usage. Returns COMMAND_MISUSE. */
int arguments_misuse(const char *who, const char *usage, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Refuses arguments behind the options that getopt() took.
 *
 * Returns COMMAND_MISUSE (reported), or -1 if there are none.
 */
int arguments_none(const char *who, int argc, char **argv);

/** Reads a whole decimal number from @min to @max; false, and no change, for anything else. */
bool argument_number(const char *text, unsigned long min, unsigned long max, unsigned long *number);

/** Reads the number of a TCP or UDP port; false, and no change, for anything else. */
bool argument_port(const char *text, uint16_t *port);

/** True if @path is a folder; else it is reported. */
bool argument_is_folder(const char *who, const char *path);

#endif
