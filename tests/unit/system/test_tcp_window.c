/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcp_window.c - what a connection may have in flight, as the kernel's limits say. */
#include <limits.h>

#include "system/tcp_window.h"

#include "unit.h"

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

TEST(half_of_the_smaller)
{
	limit_write("tcp_wmem", "4096\t16384\t4194304\n");
	limit_write("tcp_rmem", "4096\t131072\t6291456\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 2097152);
	limit_write("tcp_rmem", "4096\t131072\t1000000\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 500000);
}

TEST(unknown)
{
	limit_write("tcp_wmem", "4096\t16384\n");
	assert_int_equal(mesh_tcp_window_bytes(root), 0);
	limit_write("tcp_wmem", NULL);
	assert_int_equal(mesh_tcp_window_bytes(root), 0);
}

void tests_begin(void)
{
	char command[PATH_MAX];

	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "mkdir -p %s/proc/sys/net/ipv4", root);
	assert_int_equal(system(command), 0);
}

void tests_end(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}
