/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - parses the options of a subcommand by its table, and prints the table as help. */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/options.h"
#include "common/output.h"

enum {
	ROWS_MAX = 32,
	/* What getopt_long() returns for the rows' names; letters are smaller numbers. */
	CODE_ROWS = 256,
	CODE_HELP = CODE_ROWS + ROWS_MAX,
};

/* A table in the form that getopt_long() reads. */
struct parser {
	const struct option_table *table;
	struct option names[ROWS_MAX + 2];
	char letters[ROWS_MAX * 2 + 3];
	bool given[ROWS_MAX]; /* beside the table's rows */
};

/* ---- help --------------------------------------------------------------------------------- */

/* "-q, --quiet" or "--port PORT". Prints nothing if @file is NULL. Returns its width. */
static int label_print(FILE *file, const struct option_row *row)
{
	char letter[] = "-?, ", text[128];
	int width;

	letter[1] = row->letter;
	width = snprintf(text, sizeof(text), "%s--%s%s%s", row->letter ? letter : "", row->name,
			 row->value ? " " : "", row->value ? row->value : "");
	if (file)
		fputs(text, file);
	return width;
}

static void row_help(FILE *file, const struct option_row *row, int column)
{
	const char *line = row->help, *end;

	fputs("  ", file);
	fprintf(file, "%*s", column - label_print(file, row), "");
	for (;; line = end + 1) {
		end = strchrnul(line, '\n');
		fprintf(file, "%.*s\n", (int)(end - line), line);
		if (!*end)
			return;
		if (end[1])
			fprintf(file, "%*s", column + 2, "");
	}
}

void option_table_help(FILE *file, const struct option_table *table)
{
	const struct option_row *row;
	int width, column = 0;

	for (row = table->rows; row->name; row++) {
		width = row->help ? label_print(NULL, row) : 0;
		if (column < width + 2)
			column = width + 2;
	}
	fputs(table->usage, file);
	for (row = table->rows; row->name; row++)
		if (row->help)
			row_help(file, row, column);
	fputs(table->notes, file);
}

/* ---- values ------------------------------------------------------------------------------- */

static int number_take(const struct option_table *table, const struct option_row *row,
		       const char *text, void *field)
{
	unsigned long number;
	uint16_t number16;
	uint32_t number32;
	uint64_t number64;

	if (!argument_number(text, row->min, row->max, &number))
		return arguments_misuse(table->who,
					"--%s takes a number from %lu to %lu, not \"%.40s\"",
					row->name, row->min, row->max, text);
	number16 = (uint16_t)number;
	number32 = (uint32_t)number;
	number64 = number;
	if (row->size == sizeof(number16)) {
		memcpy(field, &number16, sizeof(number16));
	} else if (row->size == sizeof(number32)) {
		memcpy(field, &number32, sizeof(number32));
	} else {
		assert(row->size == sizeof(number64));
		memcpy(field, &number64, sizeof(number64));
	}
	return -1;
}

static int choice_take(const struct option_table *table, const struct option_row *row,
		       const char *text, const char **field)
{
	const char *const *choice;

	for (choice = row->choices; *choice; choice++) {
		if (!strcmp(text, *choice)) {
			*field = *choice;
			return -1;
		}
	}
	fprintf(stderr, "%s: --%s takes ", table->who, row->name);
	for (choice = row->choices; *choice; choice++)
		fprintf(stderr, "%s%s", *choice, !choice[1] ? "" : choice[2] ? ", " : " or ");
	fprintf(stderr, ", not \"%.40s\"\n", text);
	return COMMAND_MISUSE;
}

/* The option that was given for another constant of the same field; NULL if there is none. */
static const struct option_row *rival_find(const struct parser *parser,
					   const struct option_row *row)
{
	const struct option_row *rows = parser->table->rows;
	int i;

	for (i = 0; rows[i].name && row->kind == OPTION_KIND_CONSTANT; i++)
		if (parser->given[i] && &rows[i] != row && rows[i].kind == OPTION_KIND_CONSTANT &&
		    rows[i].offset == row->offset)
			return &rows[i];
	return NULL;
}

/* Returns an exit status, or -1 to go on. */
static int row_take(const struct option_table *table, const struct option_row *row,
		    const char *text, void *options)
{
	void *field = (char *)options + row->offset;

	switch (row->kind) {
	case OPTION_KIND_FLAG:
		*(bool *)field = true;
		break;
	case OPTION_KIND_CONSTANT:
		*(int *)field = row->constant;
		break;
	case OPTION_KIND_TEXT:
		*(const char **)field = text;
		break;
	case OPTION_KIND_FOLDER:
		if (!argument_is_folder(table->who, text))
			return COMMAND_MISUSE;
		*(const char **)field = text;
		break;
	case OPTION_KIND_NUMBER:
		return number_take(table, row, text, field);
	case OPTION_KIND_CHOICE:
		return choice_take(table, row, text, field);
	case OPTION_KIND_HANDLER:
		return row->handler(row, text, options);
	case OPTION_KIND_HELP_ONLY: /* the parser does not have its name */
		break;
	}
	return -1;
}

/* ---- parsing ------------------------------------------------------------------------------ */

static void parser_init(struct parser *parser, const struct option_table *table)
{
	const struct option_row *row;
	struct option *name = parser->names;
	char *letter = parser->letters;

	memset(parser, 0, sizeof(*parser));
	parser->table = table;
	*letter++ = ':'; /* print nothing; return ':' for a missing value */
	*letter++ = 'h';
	for (row = table->rows; row->name; row++) {
		assert(row - table->rows < ROWS_MAX);
		if (row->kind == OPTION_KIND_HELP_ONLY)
			continue;
		*name++ = (struct option){row->name,
					  !row->value	       ? no_argument
					  : *row->value == '[' ? optional_argument
							       : required_argument,
					  NULL, CODE_ROWS + (int)(row - table->rows)};
		if (!row->letter)
			continue;
		*letter++ = row->letter;
		if (row->value)
			*letter++ = ':';
	}
	*name = (struct option){"help", no_argument, NULL, CODE_HELP};
}

/* The row of what getopt_long() returned or left in optopt; NULL: none, or that of --help. */
static const struct option_row *row_find(const struct option_table *table, int code)
{
	const struct option_row *row;

	for (row = table->rows; row->name; row++)
		if (code == CODE_ROWS + (int)(row - table->rows) ||
		    (code && code == row->letter && row->kind != OPTION_KIND_HELP_ONLY))
			return row;
	return NULL;
}

/* Reports a long option that is the beginning of several names, or of none. */
static void name_refuse(const struct parser *parser, const char *text)
{
	size_t len = strcspn(text, "=");
	const struct option *name;
	const char *separator = ":";
	int num = 0;

	for (name = parser->names; name->name; name++)
		num += !strncmp(name->name, text + 2, len - 2);
	fprintf(stderr, "%s: %s option '%.*s'", parser->table->who, num ? "ambiguous" : "unknown",
		(int)len, text);
	for (name = parser->names; name->name; name++) {
		if (strncmp(name->name, text + 2, len - 2) != 0)
			continue;
		fprintf(stderr, "%s --%s", separator, name->name);
		separator = ",";
	}
	fputc('\n', stderr);
}

/* @code: ':' or '?', which getopt_long() returned. @text: the argument, if it is a long option. */
static int option_refuse(const struct parser *parser, int code, const char *text)
{
	const struct option_row *row = row_find(parser->table, optopt);
	const char *who = parser->table->who;

	if (code == ':' && row)
		fprintf(stderr, "%s: option --%s needs a value: %s\n", who, row->name, row->value);
	else if (row || optopt == CODE_HELP)
		fprintf(stderr, "%s: option --%s takes no value\n", who, row ? row->name : "help");
	else if (optopt)
		fprintf(stderr, "%s: unknown option '-%c'\n", who, optopt);
	else
		name_refuse(parser, text);
	option_table_help(stderr, parser->table);
	return COMMAND_MISUSE;
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *options,
		       int *operands)
{
	const struct option_row *row, *rival;
	struct parser parser;
	int code, status;

	parser_init(&parser, table);
	optind = 0; /* glibc: start again, also in a second call */
	while ((code = getopt_long(argc, argv, parser.letters, parser.names, NULL)) != -1) {
		if (code == 'h' || code == CODE_HELP) {
			option_table_help(stdout, table);
			return COMMAND_FINE;
		}
		if (code == '?' || code == ':')
			return option_refuse(&parser, code, argv[optind - 1]);
		row = row_find(table, code);
		rival = rival_find(&parser, row);
		if (rival)
			return arguments_misuse(table->who, "--%s and --%s exclude each other",
						rival->name, row->name);
		parser.given[row - table->rows] = true;
		status = row_take(table, row, optarg, options);
		if (status >= 0)
			return status;
	}
	if (operands) {
		*operands = optind;
		return -1;
	}
	return optind < argc
		       ? arguments_misuse(table->who, "unexpected argument \"%s\"", argv[optind])
		       : -1;
}

int arguments_misuse(const char *who, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", who);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return COMMAND_MISUSE;
}

bool argument_number(const char *text, unsigned long min, unsigned long max, unsigned long *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	/* strtoul() also accepts blanks and signs. */
	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
		return false;
	*number = value;
	return true;
}

bool argument_is_folder(const char *who, const char *path)
{
	struct stat info;

	if (!stat(path, &info) && S_ISDIR(info.st_mode))
		return true;
	fprintf(stderr, "%s: %s is not a folder\n", who, path);
	return false;
}
