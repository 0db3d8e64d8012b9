/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - how all subcommands talk: colour only where somebody sees it, aligned columns,
 * JSON that is valid whatever bytes the kernel or a peer gave us.
 */
#ifndef MESH_FI_UTILS_OUTPUT_H
#define MESH_FI_UTILS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "nic/addr.h"

enum output_style {
	OUTPUT_PLAIN,
	OUTPUT_GOOD,   /* green */
	OUTPUT_NOTICE, /* yellow */
	OUTPUT_BAD,    /* red */
	OUTPUT_STRONG, /* bold */
	OUTPUT_FAINT,
};

/** True when @file is a terminal that shows colours and NO_COLOR (no-color.org) is not set. */
bool output_is_coloured(FILE *file);

/**
 * The escape sequence that starts @style on @file, or "" where there is no colour. It ends with
 * output_style(file, OUTPUT_PLAIN).
 */
const char *output_style(FILE *file, enum output_style style);

/**
 * Replaces control characters, which a terminal would obey, by '?'. For every text that the
 * kernel's users or another node chose: names of interfaces and nodes. Returns @text.
 */
char *output_clean(char *text);

/**
 * Flushes standard output at the end of a subcommand.
 *
 * Returns @status, or COMMAND_PROBLEM if it could not be written (reported).
 */
int output_finish(const char *who, int status);

/**
 * Reports @error if it is -ENOMEM: whoever fails otherwise has said so.
 *
 * Returns COMMAND_PROBLEM.
 */
int output_failure(const char *who, int error);

/* ---- columns ---------------------------------------------------------------------------- */

/* Rows of cells, printed with each column as wide as its widest cell. */
struct output_table;

/** Returns a table of @num_columns, or NULL without memory; every call below allows NULL. */
struct output_table *output_table_new(int num_columns);

/** Adds a row of titles: one for each column. */
void output_table_titles(struct output_table *table, const char *const *titles);

/** Adds the next cell, row by row. Control characters are replaced. */
void output_table_cell(struct output_table *table, enum output_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Prints the rows, each behind @indent blanks; without memory, a line that says so. */
void output_table_print(const struct output_table *table, FILE *file, int indent);

void output_table_free(struct output_table *table);

/* ---- JSON ------------------------------------------------------------------------------- */

/* Each returns NULL without memory, which jansson's packers pass on. */

/** A string; bytes that are no UTF-8 become '?'. NULL and "" become null. */
json_t *output_json_text(const char *text);

/** "10.1.0.1/24", or null for no address. */
json_t *output_json_addr(const struct mesh_addr *addr);

/** "0x0002c90300ef1234": JSON's own numbers end at 53 bits. */
json_t *output_json_hex(uint64_t value);

/**
 * Appends @value to @list and returns @list; without memory for any of the two (either may be NULL)
 * both are given back to jansson and the result is NULL.
 */
json_t *output_json_append(json_t *list, json_t *value);

/**
 * Prints @root and a newline, and gives it back to jansson.
 *
 * @root: may be NULL: there was no memory
 *
 * Returns 0, or -1 (reported).
 */
int output_json_print(const char *who, FILE *file, json_t *root);

/** The same, without line breaks inside. */
int output_json_print_line(const char *who, FILE *file, json_t *root);

#endif
