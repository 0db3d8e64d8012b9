/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcp_window.c - what a connection may have in flight, as the kernel's limits say. */
#include "system/tcp_look.h"

#include "sysfs_fixture.h"
#include "unit.h"

TEST(half_of_the_smaller)
{
	static const struct {
		const char *wmem, *rmem;
		uint64_t bytes; /* 0: unknown */
	} cases[] = {
		{"4096\t16384\t4194304", "4096\t131072\t6291456", 2097152},
		{"4096\t16384\t4194304", "4096\t131072\t1000000", 500000},
		{"4096\t16384", "4096\t131072\t1000000", 0},
		{NULL, "4096\t131072\t1000000", 0},
	};
	struct sysfs_fixture tree;

	FOR_EACH(i, cases) {
		sysfs_fixture_make(&tree);
		if (cases[i].wmem)
			sysfs_fixture_file(&tree, cases[i].wmem, "proc/sys/net/ipv4/tcp_wmem");
		sysfs_fixture_file(&tree, cases[i].rmem, "proc/sys/net/ipv4/tcp_rmem");
		assert_int_equal(mesh_tcp_window_bytes(tree.root), cases[i].bytes);
		sysfs_fixture_remove(&tree);
	}
}
