/* SPDX-License-Identifier: Apache-2.0 */
/* printed.h - what functions and subcommands of fi_mesh print, as texts. */
#ifndef MESH_TESTS_PRINTED_H
#define MESH_TESTS_PRINTED_H

#include <stdio.h>

#include <jansson.h>

/** A file to print to; what printed() returned is forgotten. */
FILE *print_file(void);

/** What was printed to it: a text until the next print_file() or the end. */
const char *printed(void);

/** The same, parsed as JSON that must be valid. */
const json_t *json_printed(void);

/**
 * Runs a subcommand with these arguments behind its name, separated by blanks; a tab is a blank in
 * one of them. Logs are captured. Returns its status. printed() is what it printed on standard
 * output, command_errors on standard error.
 */
int command_run(int (*command)(int argc, char **argv), const char *arguments);
extern const char *command_errors;

/* Pass to COMMAND_ROWS: arguments, and the exit status that they lead to. */
struct command_row {
	const char *arguments;
	int status;
};
#define COMMAND_ROWS(command, ...)                                                                 \
	command_rows_run(command, (const struct command_row[]){__VA_ARGS__, {NULL, 0}})
void command_rows_run(int (*command)(int argc, char **argv), const struct command_row *rows);

/** Fails the test unless @part is in @text, or if it is. */
void assert_has(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);

/** Fails the test unless each of these parts is in printed(). */
#define PRINTED_HAS(...) printed_has((const char *const[]){__VA_ARGS__, NULL})
void printed_has(const char *const *parts);

/**
 * Fails the test unless the members of @root have these values: "nics[0].mtu", "9000", and so on. A
 * value is JSON, or "#3" for an array of three.
 */
#define JSON_IS(root, ...) json_is(root, (const char *const[]){__VA_ARGS__, NULL})
void json_is(const json_t *root, const char *const *pairs);

#endif
