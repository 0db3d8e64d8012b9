/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - aligned columns for people. */
#ifndef MESH_FI_UTILS_COMMON_TABLE_H
#define MESH_FI_UTILS_COMMON_TABLE_H

#include <stdio.h>

#include "common/output.h"

/* Rows of cells, printed with each column as wide as its widest cell. */
struct output_table;

/** Returns a table of @num_columns, or NULL without memory; every call below allows NULL. */
struct output_table *output_table_new(int num_columns);

/** Adds a row of titles: one for each column. */
void output_table_titles(struct output_table *table, const char *const *titles);

/** Adds the next cell, row by row. Control characters are replaced. */
void output_table_cell(struct output_table *table, enum output_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Prints the rows, each behind @indent blanks; if there was no memory, a line that reports it. */
void output_table_print(const struct output_table *table, FILE *file, int indent);

void output_table_free(struct output_table *table);

#endif
