/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - colour for terminals, printable text, and the end of a subcommand with its status. */
#ifndef MESH_FI_UTILS_COMMON_OUTPUT_H
#define MESH_FI_UTILS_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit statuses of fi_mesh. */
enum command_status {
	COMMAND_FINE = 0,
	COMMAND_PROBLEM = 1, /* a problem was found */
	COMMAND_MISUSE = 2,  /* unknown option or argument */
};

enum output_style {
	OUTPUT_PLAIN,
	OUTPUT_GOOD,   /* green */
	OUTPUT_NOTICE, /* yellow */
	OUTPUT_BAD,    /* red */
	OUTPUT_STRONG, /* bold */
	OUTPUT_FAINT,
};

/**
 * The escape sequence that starts @style on @file, or "" where there is no colour. It ends with
 * output_style(file, OUTPUT_PLAIN).
 */
const char *output_style(FILE *file, enum output_style style);

/** True when @file is a terminal that shows colours and NO_COLOR (no-color.org) is not set. */
bool output_is_coloured(FILE *file);

/**
 * mesh_text_clean(), which a terminal cannot interpret. For every text that comes from a user, a
 * file or another node: names of interfaces and nodes. Returns @text.
 */
char *output_clean(char *text);

/** Adds to @text, of @size bytes, as much as there is room for. */
void output_add(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Flushes standard output at the end of a subcommand.
 *
 * Returns @status, or COMMAND_PROBLEM if it could not be written (reported).
 */
int output_finish(const char *who, int status);

/**
 * Reports @error if it is -ENOMEM: other errors are reported where they occur.
 *
 * Returns COMMAND_PROBLEM.
 */
int output_failure(const char *who, int error);

#endif
