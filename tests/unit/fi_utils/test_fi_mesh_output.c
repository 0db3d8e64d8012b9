/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_output.c - columns, colours and JSON texts; what Ctrl-C does. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/output.h"
#include "common/progress.h"
#include "common/table.h"

#include "printed.h"
#include "unit.h"

TEST(table)
{
	struct output_table *table = output_table_new(NULL, 3);

	output_table_cell(table, OUTPUT_STRONG, "%s", "a");
	output_table_cell(table, OUTPUT_PLAIN, "%d", 1000);
	output_table_cell(table, OUTPUT_PLAIN, "x");
	output_table_cell(table, OUTPUT_PLAIN, "long\033[31m\x9b\xc2\x9b");
	output_table_cell(table, OUTPUT_PLAIN, "-");
	output_table_cell(table, OUTPUT_PLAIN, "last");
	output_table_end(table, print_file(), 2);
	/* No terminal, no colour; and no name may contain its own. */
	assert_string_equal(printed(), "  a             1000  x\n  long?[31m???  -     last\n");
}

TEST(table_without_memory)
{
	output_table_cell(NULL, OUTPUT_PLAIN, "x");
	output_table_end(NULL, print_file(), 0);
	assert_string_equal(printed(), "(out of memory)\n");
}

/* A row that is too wide for the terminal continues below, and a long text breaks at blanks. */
TEST(table_on_terminal)
{
	static const char *const titles[] = {"NAME", "SIZE", "WHY"};
	struct output_table *table = output_table_new(titles, 3);
	const struct winsize size = {.ws_col = 20};
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	char text[200] = "";
	FILE *file;

	assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
	file = fopen(ptsname(terminal), "w");
	assert_non_null(file);
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
	setenv("NO_COLOR", "1", 1);
	output_table_cell(table, OUTPUT_PLAIN, "enp1s0f0");
	output_table_cell(table, OUTPUT_PLAIN, "1");
	output_table_cell(table, OUTPUT_PLAIN, "both on one subnet");
	output_table_end(table, file, 0);
	fflush(file);
	assert_true(read(terminal, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "NAME      SIZE\r\n    WHY\r\n"
				  "enp1s0f0  1\r\n    both on one\r\n    subnet\r\n");
	fclose(file);
	close(terminal);
}

/* Under ASan what is lost shows. */
TEST(json_append)
{
	json_t *list = output_json_append(json_array(), json_integer(7));

	assert_int_equal(json_integer_value(json_array_get(list, 0)), 7);
	assert_null(output_json_append(list, NULL));
	assert_null(output_json_append(NULL, json_string("x")));
	assert_null(output_json_append(NULL, NULL));
}

TEST(json_print)
{
	FILE *file = print_file();

	assert_int_equal(output_json_print_line("test", file, json_pack("{s:[i, i]}", "a", 1, 2)),
			 0);
	assert_int_equal(output_json_print("test", file, json_pack("{s:i}", "a", 1)), 0);
	assert_int_equal(output_json_print("test", file, NULL), -1);
	assert_string_equal(printed(), "{\"a\":[1,2]}\n{\n  \"a\": 1\n}\n");
}

TEST(json_text)
{
	json_t *value = output_json_text("e\xff\"0");

	assert_string_equal(json_string_value(value), "e?\"0");
	json_decref(value);
	assert_true(json_is_null(output_json_text("")));
	assert_true(json_is_null(output_json_text(NULL)));
	value = output_json_hex(0x2c90300ef1234);
	assert_string_equal(json_string_value(value), "0x0002c90300ef1234");
	json_decref(value);
}

TEST(colour)
{
	assert_false(output_is_coloured(stderr) && !isatty(STDERR_FILENO));
	setenv("NO_COLOR", "1", 1);
	assert_false(output_is_coloured(stdout));
	unsetenv("NO_COLOR");
}

/* Not on a terminal: no progress is shown. */
TEST(progress)
{
	struct progress *progress = progress_begin("waiting for %s", "b");

	progress_say(progress, "still waiting");
	progress_end(progress);
	progress_end(NULL);
}

TEST(interrupt)
{
	struct pollfd fds[3] = {{.fd = -1}, {.fd = -1}};

	interrupt_catch();
	assert_false(interrupt_happened());
	assert_int_equal(interrupt_poll(fds, 2, 0), -ETIMEDOUT);
	raise(SIGINT);
	assert_true(interrupt_happened());
	assert_int_equal(interrupt_poll(fds, 2, UINT64_MAX), -EINTR);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

TEST(totals)
{
	struct check_totals totals = {{[CHECK_PASS] = 3, [CHECK_UNKNOWN] = 1}};
	char text[CHECK_TOTALS_TEXT_MAX];
	json_t *root;

	assert_int_equal(check_totals_status(&totals), COMMAND_FINE);
	totals.counts[CHECK_WARN] = 1;
	assert_int_equal(check_totals_status(&totals), COMMAND_PROBLEM);
	totals = (struct check_totals){{[CHECK_PASS] = 3, [CHECK_FAIL] = 2}};
	assert_int_equal(check_totals_status(&totals), COMMAND_PROBLEM);
	assert_string_equal(check_totals_text(&totals, text), "3 pass, 0 unknown, 0 warn, 2 fail");
	root = check_totals_json(&totals, "list", json_pack("[i, i]", 1, 2));
	JSON_IS(root, "fail", "2", "list", "[1,2]");
	json_decref(root);
	assert_null(check_totals_json(&totals, "list", NULL)); /* no half a document */
}
