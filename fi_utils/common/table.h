/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - aligned columns for people. */
#ifndef MESH_FI_UTILS_COMMON_TABLE_H
#define MESH_FI_UTILS_COMMON_TABLE_H

#include <stdio.h>

#include "common/output.h"

/* Rows of cells, printed with each column as wide as its widest cell. */
struct output_table;

/**
 * Returns a table of @num_columns, or NULL without memory; every call below allows NULL.
 *
 * @titles: the first row, one for each column; NULL: there is none
 */
struct output_table *output_table_new(const char *const *titles, int num_columns);

/** Adds the next cell, row by row. Control characters are replaced. */
void output_table_cell(struct output_table *table, enum output_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The same for a text, or a number, in plain style. */
void output_table_text(struct output_table *table, const char *text);
void output_table_number(struct output_table *table, unsigned long long number);

/**
 * Prints the rows, each after @indent blanks; if there was no memory, a line that reports it. On a
 * terminal a row that is too wide goes on below, indented. Frees the table.
 */
void output_table_end(struct output_table *table, FILE *file, int indent);

#endif
