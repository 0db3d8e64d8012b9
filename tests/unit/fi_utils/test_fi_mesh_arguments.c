/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_arguments.c - numbers, ports and folders that the subcommands are given. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/arguments.h"

static void test_numbers(void **state)
{
	unsigned long number = 7;

	(void)state;
	assert_true(argument_number("0", 0, 9, &number));
	assert_int_equal(number, 0);
	assert_true(argument_number("0012", 1, 12, &number));
	assert_int_equal(number, 12);
	assert_true(argument_number("18446744073709551615", 0, ULONG_MAX, &number));
	assert_true(number == ULONG_MAX);
}

static void test_no_numbers(void **state)
{
	static const char *const texts[] = {"",	 " 1",	"+1", "-1",  "1 ",  "1x",
					    "x", "0x1", "13", "1.5", "1e1", "18446744073709551616"};
	unsigned long number = 7;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(argument_number(texts[i], 0, 12, &number));
	assert_false(argument_number("18446744073709551616", 0, ULONG_MAX, &number));
	assert_false(argument_number("3", 4, 12, &number));
	assert_int_equal(number, 7);
}

static void test_ports(void **state)
{
	uint16_t port = 1;

	(void)state;
	assert_true(argument_port("65535", &port));
	assert_int_equal(port, 65535);
	assert_false(argument_port("0", &port));
	assert_false(argument_port("65536", &port));
	assert_int_equal(port, 65535);
}

static void test_folders(void **state)
{
	(void)state;
	assert_true(argument_is_folder("test", "/proc"));
	assert_false(argument_is_folder("test", "/proc/version"));
	assert_false(argument_is_folder("test", "/proc/none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_no_numbers),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
