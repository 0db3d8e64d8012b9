/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcp_window.c - what a connection may have in flight, as the kernel's limits say. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "system/tcp_window.h"

static char root[] = "/tmp/test_tcp_window.XXXXXX";

/* @text: NULL: there is no such file */
static void limit_write(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/sys/net/ipv4/%s", root, name);
	if (!text) {
		remove(path);
		return;
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	char command[PATH_MAX];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(command, sizeof(command), "mkdir -p %s/proc/sys/net/ipv4", root);
	return system(command);
}

static int teardown(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void test_half_of_the_smaller(void **state)
{
	(void)state;
	limit_write("tcp_wmem", "4096\t16384\t4194304\n");
	limit_write("tcp_rmem", "4096\t131072\t6291456\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 2097152);
	limit_write("tcp_rmem", "4096\t131072\t1000000\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 500000);
}

static void test_unknown(void **state)
{
	(void)state;
	limit_write("tcp_wmem", "4096\t16384\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 0);
	limit_write("tcp_wmem", NULL);
	assert_int_equal(mesh_tcp_window_bytes(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_of_the_smaller),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
