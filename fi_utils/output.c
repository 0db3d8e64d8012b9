/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - colour, columns and JSON for all subcommands. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#include "command.h"
#include "output.h"

bool output_is_coloured(FILE *file)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no_color && *no_color) && term && strcmp(term, "dumb") && isatty(fileno(file));
}

static const char *style_sequence(enum output_style style)
{
	/* ECMA-48, "select graphic rendition". */
	static const char *const sequences[] = {
		[OUTPUT_PLAIN] = "\033[0m",   [OUTPUT_GOOD] = "\033[32m",
		[OUTPUT_NOTICE] = "\033[33m", [OUTPUT_BAD] = "\033[31m",
		[OUTPUT_STRONG] = "\033[1m",  [OUTPUT_FAINT] = "\033[2m",
	};

	return sequences[style];
}

const char *output_style(FILE *file, enum output_style style)
{
	return output_is_coloured(file) ? style_sequence(style) : "";
}

char *output_clean(char *text)
{
	unsigned char *at;

	for (at = (unsigned char *)text; *at; at++)
		if (*at < 0x20 || *at == 0x7f)
			*at = '?';
	return text;
}

int output_finish(const char *who, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: cannot write to standard output\n", who);
	return COMMAND_PROBLEM;
}

int output_failure(const char *who, int error)
{
	if (error == -ENOMEM)
		fprintf(stderr, "%s: out of memory\n", who);
	return COMMAND_PROBLEM;
}

/* ---- columns ---------------------------------------------------------------------------- */

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

struct output_table *output_table_new(int num_columns)
{
	struct output_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->num_columns = num_columns;
	table->widths = calloc((size_t)num_columns, sizeof(*table->widths));
	if (!table->widths) {
		free(table);
		return NULL;
	}
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

void output_table_titles(struct output_table *table, const char *const *titles)
{
	int i;

	for (i = 0; table && i < table->num_columns; i++)
		output_table_cell(table, OUTPUT_STRONG, "%s", titles[i]);
}

static void row_print(const struct output_table *table, FILE *file, int first, int indent)
{
	int column, width;
	const struct cell *cell;

	fprintf(file, "%*s", indent, "");
	for (column = 0; column < table->num_columns; column++) {
		cell = &table->cells[first + column];
		/* Nothing is padded behind the last column. */
		width = column < table->num_columns - 1 ? table->widths[column] : 0;
		if (cell->style != OUTPUT_PLAIN)
			fputs(output_style(file, cell->style), file);
		fputs(cell->text, file);
		if (cell->style != OUTPUT_PLAIN)
			fputs(output_style(file, OUTPUT_PLAIN), file);
		if (column < table->num_columns - 1)
			fprintf(file, "%*s", width - (int)strlen(cell->text) + 2, "");
	}
	fputc('\n', file);
}

void output_table_print(const struct output_table *table, FILE *file, int indent)
{
	int first;

	if (!table || table->incomplete) {
		fprintf(file, "%*s(out of memory)\n", indent, "");
		return;
	}
	for (first = 0; first + table->num_columns <= table->num_cells; first += table->num_columns)
		row_print(table, file, first, indent);
}

void output_table_free(struct output_table *table)
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

/* ---- JSON ------------------------------------------------------------------------------- */

json_t *output_json_text(const char *text)
{
	json_t *value;
	char *copy, *at;

	if (!text || !*text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	copy = strdup(text);
	for (at = copy; at && *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

json_t *output_json_addr(const struct mesh_addr *addr)
{
	char text[MESH_ADDR_TEXT_MAX];

	return addr->family == MESH_FAMILY_NONE ? json_null()
						: json_string(mesh_addr_text_prefix(addr, text));
}

json_t *output_json_hex(uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016" PRIx64, value);
	return json_string(text);
}

json_t *output_json_append(json_t *list, json_t *value)
{
	if (list && !json_array_append_new(list, value))
		return list;
	if (!list)
		json_decref(value); /* else append_new() has done so */
	json_decref(list);
	return NULL;
}

static int json_print(const char *who, FILE *file, json_t *root, size_t flags)
{
	int ret = root ? json_dumpf(root, file, flags) : -1;

	if (!ret)
		fputc('\n', file);
	else
		fprintf(stderr, "%s: the JSON could not be made or written\n", who);
	json_decref(root);
	return ret;
}

int output_json_print(const char *who, FILE *file, json_t *root)
{
	return json_print(who, file, root, JSON_INDENT(2));
}

int output_json_print_line(const char *who, FILE *file, json_t *root)
{
	return json_print(who, file, root, JSON_COMPACT);
}
