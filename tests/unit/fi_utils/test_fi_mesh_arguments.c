/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fi_mesh_arguments.c - numbers and folders that the subcommands are given, and the table of
 * options: each kind of row, each error, and --help.
 */
#include <limits.h>

#include "common/options.h"
#include "common/output.h"

#include "printed.h"
#include "unit.h"

/* ---- values ------------------------------------------------------------------------------- */

TEST(numbers)
{
	unsigned long number = 7;

	assert_true(argument_number("0", 0, 9, &number));
	assert_int_equal(number, 0);
	assert_true(argument_number("0012", 1, 12, &number));
	assert_int_equal(number, 12);
	assert_true(argument_number("18446744073709551615", 0, ULONG_MAX, &number));
	assert_true(number == ULONG_MAX);
}

TEST(no_numbers)
{
	static const char *const texts[] = {"",	 " 1",	"+1", "-1",  "1 ",  "1x",
					    "x", "0x1", "13", "1.5", "1e1", "18446744073709551616"};
	unsigned long number = 7;

	FOR_EACH(i, texts)
		assert_false(argument_number(texts[i], 0, 12, &number));
	assert_false(argument_number("18446744073709551616", 0, ULONG_MAX, &number));
	assert_false(argument_number("3", 4, 12, &number));
	assert_int_equal(number, 7);
}

TEST(folders)
{
	assert_true(argument_is_folder("test", "/proc"));
	assert_false(argument_is_folder("test", "/proc/version"));
	assert_false(argument_is_folder("test", "/proc/none"));
}

/* ---- the table ---------------------------------------------------------------------------- */

struct options {
	bool loud;
	int shape;
	const char *file;
	uint16_t port, port_after;
	int mtu, mtu_after;
	unsigned long count;
	const char *format;
	char items[64]; /* values of --item, each with a ';' */
};

static int item_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	assert_string_equal(row->name, "item");
	if (!strcmp(text, "bad"))
		return arguments_misuse("fi_mesh test", "--%s: a bad item", row->name);
	strcat(strcat(options->items, text), ";");
	return -1;
}

static int plain_take(const struct option_row *row, const char *text, void *arg)
{
	assert_null(text);
	return COMMAND_PROBLEM;
}

static const char *const formats[] = {"text", "json", "svg", NULL};

static const struct option_row option_rows[] = {
	{"loud", 'l', NULL, "say more", OPTION_FLAG(struct options, loud)},
	{"ring", 0, NULL, NULL, OPTION_CONSTANT(struct options, shape, 1)},
	{"line", 0, NULL, NULL, OPTION_CONSTANT(struct options, shape, 2)},
	{"file", 'f', "FILE", "a file of\nsome kind\n", OPTION_TEXT(struct options, file)},
	{"port", 0, "PORT", "where", OPTION_NUMBER(struct options, port, 1, UINT16_MAX)},
	{"mtu", 0, "BYTES", NULL, OPTION_NUMBER(struct options, mtu, 1280, 65520)},
	{"count", 0, "N", NULL, OPTION_NUMBER(struct options, count, 0, ULONG_MAX)},
	{"format", 0, "FORMAT", NULL, OPTION_CHOICE(struct options, format, formats)},
	{"item", 0, "ITEM", NULL, OPTION_HANDLER(item_take)},
	{"plain", 0, NULL, NULL, OPTION_HANDLER(plain_take)},
	{"other", 'o', "X", "elsewhere", OPTION_HELP_ONLY},
	{.name = NULL},
};

static const struct option_table option_table = {
	.who = "fi_mesh test",
	.usage = "usage: test\n\n",
	.notes = "\nThe end.\n",
	.rows = option_rows,
};

static const char help[] = "usage: test\n"
			   "\n"
			   "  -l, --loud       say more\n"
			   "  -f, --file FILE  a file of\n"
			   "                   some kind\n"
			   "\n"
			   "  --port PORT      where\n"
			   "  -o, --other X    elsewhere\n"
			   "\n"
			   "The end.\n";

/* The last parse: its options and operands. */
static struct options options;
static char *arguments[12];
static int num_arguments, first_operand;

static bool operands;

static int parsed(int argc, char **argv)
{
	int status;

	memset(&options, 0, sizeof(options));
	options.port_after = options.mtu_after = 7;
	status = option_table_parse(&option_table, argc, argv, &options,
				    operands ? &first_operand : NULL);
	num_arguments = argc;
	memcpy(arguments, argv, sizeof(arguments[0]) * (size_t)(argc + 1)); /* it sorts them */
	return status;
}

/* Parses words that are separated by blanks. */
static int parse(const char *words, bool takes_operands)
{
	operands = takes_operands;
	return command_run(parsed, words);
}

/* Valid options print nothing, and the parser continues. */
static void takes(const char *words)
{
	assert_int_equal(parse(words, false), -1);
	assert_string_equal(printed(), "");
	assert_string_equal(command_errors, "");
}

/* Refused with this message, with or without --help's text behind it. */
static void refuses(const char *words, const char *message, bool with_help)
{
	char expected[2000];

	assert_int_equal(parse(words, false), COMMAND_MISUSE);
	snprintf(expected, sizeof(expected), "fi_mesh test: %s\n%s", message,
		 with_help ? help : "");
	assert_string_equal(printed(), "");
	assert_string_equal(command_errors, expected);
}

TEST(spellings)
{
	takes("");
	assert_false(options.loud);
	takes("--loud");
	assert_true(options.loud);
	takes("-l");
	assert_true(options.loud);
	takes("--file a");
	assert_string_equal(options.file, "a");
	takes("--file=a=b");
	assert_string_equal(options.file, "a=b");
	takes("--file=");
	assert_string_equal(options.file, "");
	takes("-f a");
	assert_string_equal(options.file, "a");
	takes("-lfa");
	assert_true(options.loud);
	assert_string_equal(options.file, "a");
	takes("--fi --loud"); /* a value may look like an option */
	assert_string_equal(options.file, "--loud");
	assert_false(options.loud);
}

TEST(constants)
{
	takes("--ring");
	assert_int_equal(options.shape, 1);
	takes("--ring --ring");
	assert_int_equal(options.shape, 1);
	refuses("--ring --line", "--ring and --line exclude each other", false);
}

/* Each size of field is written, and nothing beside it. */
TEST(number_rows)
{
	takes("--port 65535 --mtu 65520 --count 18446744073709551615");
	assert_int_equal(options.port, 65535);
	assert_int_equal(options.port_after, 7);
	assert_int_equal(options.mtu, 65520);
	assert_int_equal(options.mtu_after, 7);
	assert_true(options.count == ULONG_MAX);
	takes("--port 1 --mtu 1280 --count 0");
	assert_int_equal(options.port, 1);
	assert_int_equal(options.mtu, 1280);
	refuses("--port 0", "--port takes a number from 1 to 65535, not \"0\"", false);
	refuses("--port=65536", "--port takes a number from 1 to 65535, not \"65536\"", false);
	refuses("--mtu 9k", "--mtu takes a number from 1280 to 65520, not \"9k\"", false);
	assert_int_equal(options.mtu, 0);
}

TEST(choices)
{
	takes("--format text");
	assert_string_equal(options.format, "text");
	takes("--format=svg");
	assert_string_equal(options.format, "svg");
	refuses("--format sv", "--format takes text, json or svg, not \"sv\"", false);
	assert_null(options.format);
}

TEST(handlers)
{
	takes("--item a --loud --item=b");
	assert_string_equal(options.items, "a;b;");
	refuses("--item a --item bad --loud", "--item: a bad item", false);
	assert_string_equal(options.items, "a;");
	assert_false(options.loud);
	assert_int_equal(parse("--plain --unknown", false), COMMAND_PROBLEM);
}

TEST(misuse)
{
	refuses("--yaml", "unknown option '--yaml'", true);
	refuses("--yaml=x", "unknown option '--yaml'", true);
	refuses("-x", "unknown option '-x'", true);
	refuses("-lx", "unknown option '-x'", true);
	refuses("--l", "ambiguous option '--l': --loud, --line", true);
	refuses("--p=1", "ambiguous option '--p': --port, --plain", true);
	refuses("--file", "option --file needs a value: FILE", true);
	refuses("-lf", "option --file needs a value: FILE", true);
	refuses("--loud=yes", "option --loud takes no value", true);
	refuses("--lo=yes", "option --loud takes no value", true);
	refuses("--help=me", "option --help takes no value", true);
	refuses("--other x", "unknown option '--other'", true);
	refuses("-o x", "unknown option '-o'", true);
}

TEST(operands)
{
	refuses("--loud a b", "unexpected argument \"a\"", false);
	refuses("-- --loud", "unexpected argument \"--loud\"", false);
	assert_int_equal(parse("a --loud b -f c -- --line", true), -1);
	assert_true(options.loud);
	assert_int_equal(options.shape, 0);
	assert_int_equal(num_arguments - first_operand, 3);
	assert_string_equal(arguments[first_operand], "a");
	assert_string_equal(arguments[first_operand + 1], "b");
	assert_string_equal(arguments[first_operand + 2], "--line");
	assert_int_equal(parse("--loud", true), -1);
	assert_int_equal(first_operand, num_arguments);
}

/* It takes effect in its place: errors before it are reported first. */
TEST(help)
{
	static const char *const spellings[] = {"--help", "-h", "--he", "-lh", "a --help --yaml"};

	FOR_EACH(i, spellings) {
		assert_int_equal(parse(spellings[i], false), COMMAND_FINE);
		assert_string_equal(printed(), help);
		assert_string_equal(command_errors, "");
	}
	refuses("--yaml --help", "unknown option '--yaml'", true);
}
