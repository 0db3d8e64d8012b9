/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options of a subcommand as one table, from which the parser, its error messages
 * and --help are made.
 */
#ifndef MESH_FI_UTILS_COMMON_OPTIONS_H
#define MESH_FI_UTILS_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a row does with its option. A row uses one of the macros below, which also fill it. */
enum option_kind {
	OPTION_KIND_FLAG,
	OPTION_KIND_CONSTANT,
	OPTION_KIND_TEXT,
	OPTION_KIND_FOLDER,
	OPTION_KIND_NUMBER,
	OPTION_KIND_CHOICE,
	OPTION_KIND_HANDLER,
	OPTION_KIND_HELP_ONLY,
};

struct option_row;

/**
 * Takes one option. @text: its value, NULL if the row has none. It lies in argv. @options: the
 * subcommand's struct.
 *
 * Returns an exit status (reported), or -1 to go on.
 */
typedef int (*option_handler)(const struct option_row *row, const char *text, void *options);

struct option_row {
	const char *name; /* without the two dashes; NULL ends the table */
	char letter;	  /* the short option, or 0 */
	const char *
		value; /* what --help calls the value; NULL: the option takes none; "[X]": it may */
	const char *help; /* lines; one that ends with \n ends a group. NULL: not in --help */
	enum option_kind kind;
	size_t offset, size; /* the field in the subcommand's struct, in bytes */
	unsigned long min, max;
	int constant;
	const char *const *choices; /* ended by NULL */
	option_handler handler;
};

/* The offset of a field; the compiler warns unless the field has type @kind. */
#define OPTION_OFFSET(type, field, kind)                                                           \
	(offsetof(type, field) + 0 * sizeof(&((type *)NULL)->field == (kind *)NULL))

/* Sets a bool. */
#define OPTION_FLAG(type, field)                                                                   \
	.kind = OPTION_KIND_FLAG, .offset = OPTION_OFFSET(type, field, bool)
/* Sets an int to @number: one of several options for this field, which exclude each other. */
#define OPTION_CONSTANT(type, field, number)                                                       \
	.kind = OPTION_KIND_CONSTANT, .offset = OPTION_OFFSET(type, field, int),                   \
	.constant = (number)
/* Sets a const char *, which lies in argv. */
#define OPTION_TEXT(type, field)                                                                   \
	.kind = OPTION_KIND_TEXT, .offset = OPTION_OFFSET(type, field, const char *)
/* The same for the path of a folder, which must exist. */
#define OPTION_FOLDER(type, field)                                                                 \
	.kind = OPTION_KIND_FOLDER, .offset = OPTION_OFFSET(type, field, const char *)
/* Sets an integer of 2, 4 or 8 bytes that can hold all of @low to @high. */
#define OPTION_NUMBER(type, field, low, high)                                                      \
	.kind = OPTION_KIND_NUMBER, .offset = offsetof(type, field),                               \
	.size = sizeof(((type *)NULL)->field), .min = (low), .max = (high)
/* Sets a const char * to one of @names. */
#define OPTION_CHOICE(type, field, names)                                                          \
	.kind = OPTION_KIND_CHOICE, .offset = OPTION_OFFSET(type, field, const char *),            \
	.choices = (names)
/* Calls @function, for each time that the option is given, in their order. */
#define OPTION_HANDLER(function) .kind = OPTION_KIND_HANDLER, .handler = (function)
/* Is shown by --help, but parsed elsewhere. */
#define OPTION_HELP_ONLY .kind = OPTION_KIND_HELP_ONLY

/* --help and -h are options of each table without a row. */
struct option_table {
	const char *who;   /* the beginning of each message: "fi_mesh plan" */
	const char *usage; /* --help up to the options: synopsis, purpose, operands */
	const char *notes; /* --help after the options */
	const struct option_row *rows;
};

/** Prints what --help prints. */
void option_table_help(FILE *file, const struct option_table *table);

/**
 * Parses @argv as getopt_long() does: "--name VALUE", "--name=VALUE", short options, unambiguous
 * beginnings of names, and operands between options, which it moves behind them.
 *
 * @options: the subcommand's struct, with the defaults.
 * @operands: the index in @argv of the first operand. NULL: operands are an error.
 *
 * Returns an exit status (reported, or --help was printed), or -1 to go on.
 */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *options,
		       int *operands);

/* @who, here and below: the beginning of each message, "fi_mesh plan". */

/** Reports a usage error. Returns COMMAND_MISUSE. */
int arguments_misuse(const char *who, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Reads a whole decimal number from @min to @max; false, and no change, for anything else. */
bool argument_number(const char *text, unsigned long min, unsigned long max, unsigned long *number);

/** True if @path is a folder; else it is reported. */
bool argument_is_folder(const char *who, const char *path);

#endif
