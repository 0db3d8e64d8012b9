/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - rows of cells, each column as wide as its widest cell. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"

#include "common/output.h"
#include "common/table.h"

#define CONTINUATION_INDENT 4

struct cell {
	char *text; /* owned */
	enum output_style style;
};

struct output_table {
	int num_columns;
	int *widths;	    /* of each column so far, owned */
	struct cell *cells; /* row by row */
	int num_cells;
	bool incomplete; /* memory ran out */
};

struct output_table *output_table_new(const char *const *titles, int num_columns)
{
	struct output_table *table = calloc(1, sizeof(*table));
	int i;

	if (!table)
		return NULL;
	table->num_columns = num_columns;
	table->widths = calloc((size_t)num_columns, sizeof(*table->widths));
	if (!table->widths) {
		free(table);
		return NULL;
	}
	for (i = 0; titles && i < num_columns; i++)
		output_table_cell(table, OUTPUT_STRONG, "%s", titles[i]);
	return table;
}

static struct cell *cell_add(struct output_table *table)
{
	struct cell *cells;

	cells = mesh_array_room(table->cells, (size_t)table->num_cells, sizeof(*cells));
	if (!cells)
		return NULL;
	table->cells = cells;
	return &cells[table->num_cells++];
}

void output_table_cell(struct output_table *table, enum output_style style, const char *format, ...)
{
	struct cell *cell = table ? cell_add(table) : NULL;
	va_list args;
	int *width, len;

	if (!cell) {
		if (table)
			table->incomplete = true;
		return;
	}
	cell->style = style;
	va_start(args, format);
	if (vasprintf(&cell->text, format, args) < 0)
		cell->text = NULL;
	va_end(args);
	if (!cell->text) {
		table->incomplete = true;
		return;
	}
	len = (int)strlen(output_clean(cell->text));
	width = &table->widths[(table->num_cells - 1) % table->num_columns];
	*width = len > *width ? len : *width;
}

void output_table_text(struct output_table *table, const char *text)
{
	output_table_cell(table, OUTPUT_PLAIN, "%s", text);
}

void output_table_number(struct output_table *table, unsigned long long number)
{
	output_table_cell(table, OUTPUT_PLAIN, "%llu", number);
}

/* The columns of @file, if it is a terminal: a file and a pipe get each row as one line. */
static int terminal_width(FILE *file)
{
	struct winsize size;

	if (!isatty(fileno(file)))
		return INT_MAX;
	return ioctl(fileno(file), TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

/* Prints the words of @text on lines of up to @width columns, each but the first after @indent. */
static void words_print(FILE *file, const char *text, int width, int indent)
{
	while (width > 0 && (int)strlen(text) > width) {
		int len = width;

		while (len > 0 && text[len] != ' ')
			len--;
		if (!len)
			break; /* a word that is longer than a line */
		fprintf(file, "%.*s\n%*s", len, text, indent, "");
		text += len + 1;
	}
	fputs(text, file);
}

/* A row that is wider than @width continues on indented lines, in columns as well. */
static void row_print(const struct output_table *table, FILE *file, int first, int indent,
		      int width)
{
	int column, used = indent;
	const struct cell *cell;

	fprintf(file, "%*s", indent, "");
	for (column = 0; column < table->num_columns; column++) {
		cell = &table->cells[first + column];
		if (column && table->widths[column] > width - used) {
			used = indent + CONTINUATION_INDENT;
			fprintf(file, "\n%*s", used, "");
		}
		if (cell->style != OUTPUT_PLAIN)
			fputs(output_style(file, cell->style), file);
		words_print(file, cell->text, width - used, used);
		if (cell->style != OUTPUT_PLAIN)
			fputs(output_style(file, OUTPUT_PLAIN), file);
		used += table->widths[column] + 2;
		/* The last column of a line is not padded. */
		if (column < table->num_columns - 1 && table->widths[column + 1] <= width - used)
			fprintf(file, "%*s", table->widths[column] - (int)strlen(cell->text) + 2,
				"");
	}
	fputc('\n', file);
}

static void table_free(struct output_table *table)
{
	int i;

	for (i = 0; table && i < table->num_cells; i++)
		free(table->cells[i].text);
	if (table) {
		free(table->cells);
		free(table->widths);
	}
	free(table);
}

void output_table_end(struct output_table *table, FILE *file, int indent)
{
	int first, width = terminal_width(file);

	if (!table || table->incomplete)
		fprintf(file, "%*s(out of memory)\n", indent, "");
	else
		for (first = 0; first + table->num_columns <= table->num_cells;
		     first += table->num_columns)
			row_print(table, file, first, indent, width);
	table_free(table);
}
