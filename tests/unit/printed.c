/* SPDX-License-Identifier: Apache-2.0 */
/* printed.c - what functions and subcommands of fi_mesh print, as texts. */
#include "log_capture.h"
#include "printed.h"
#include "unit.h"

#define ARGUMENTS_MAX 24

const char *command_errors;
static char *text, *errors, *words; /* of the last command, which may keep the words */
static size_t size, errors_size;
static FILE *file;
static json_t *document;

FILE *print_file(void)
{
	printed();
	free(text);
	text = NULL;
	file = open_memstream(&text, &size);
	assert_non_null(file);
	return file;
}

const char *printed(void)
{
	if (file)
		assert_int_equal(fclose(file), 0);
	file = NULL;
	return text;
}

const json_t *json_printed(void)
{
	json_error_t error;

	json_decref(document);
	document = json_loads(printed(), JSON_REJECT_DUPLICATES, &error);
	if (!document)
		fail_msg("not JSON: %s in\n%s", error.text, text);
	return document;
}

int command_run(int (*command)(int argc, char **argv), const char *arguments)
{
	char *rest, *argv[ARGUMENTS_MAX + 1] = {(char[]){"test"}};
	FILE *screen = stdout, *saved = stderr;
	int argc = 1, status;
	char *tab;

	free(words);
	words = rest = strdup(arguments);
	assert_non_null(words);
	while (argc < ARGUMENTS_MAX && (argv[argc] = strtok_r(rest, " ", &rest)))
		for (tab = argv[argc++]; (tab = strchr(tab, '\t'));)
			*tab = ' ';
	assert_true(argc < ARGUMENTS_MAX);
	free(errors);
	errors = NULL;
	log_capture_start();
	stdout = print_file();
	stderr = open_memstream(&errors, &errors_size);
	status = command(argc, argv);
	fclose(stderr);
	stdout = screen;
	stderr = saved;
	printed();
	log_capture_stop();
	command_errors = errors;
	return status;
}

void command_rows_run(int (*command)(int argc, char **argv), const struct command_row *rows)
{
	int status;

	for (; rows->arguments; rows++) {
		status = command_run(command, rows->arguments);
		if (status != rows->status)
			fail_msg("\"%s\": status %d, not %d", rows->arguments, status,
				 rows->status);
	}
}

void assert_has(const char *whole, const char *part)
{
	if (!strstr(whole, part))
		fail_msg("no \"%s\" in:\n%s", part, whole);
}

void assert_lacks(const char *whole, const char *part)
{
	if (strstr(whole, part))
		fail_msg("\"%s\" is in:\n%s", part, whole);
}

void printed_has(const char *const *parts)
{
	for (; *parts; parts++)
		assert_has(printed(), *parts);
}

static const json_t *json_at(const json_t *at, const char *path)
{
	char name[64];
	size_t len;

	while (at && *path) {
		if (*path == '[') {
			at = json_array_get(at, strtoul(path + 1, NULL, 10));
			path = strchr(path, ']') + 1;
		} else {
			path += *path == '.';
			len = strcspn(path, ".[");
			snprintf(name, sizeof(name), "%.*s", (int)len, path);
			at = json_object_get(at, name);
			path += len;
		}
	}
	return at;
}

void json_is(const json_t *root, const char *const *pairs)
{
	for (; *pairs; pairs += 2) {
		const json_t *at = json_at(root, pairs[0]);
		char *value = at ? json_dumps(at, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
		char count[16] = "";

		if (json_is_array(at))
			snprintf(count, sizeof(count), "#%zu", json_array_size(at));
		if (!value || strcmp(*pairs[1] == '#' ? count : value, pairs[1]))
			fail_msg("%s is %s, not %s", pairs[0], value ? value : "missing", pairs[1]);
		free(value);
	}
}
