/* SPDX-License-Identifier: Apache-2.0 */
/* test_drain_marks.c - marks of NICs that are taken out of use, in a folder. */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/descriptors.h"
#include "system/stats_file.h"

#include "unit.h"

static char path[] = "/tmp/test_drain_marks.XXXXXX";
static int folder = -1;
static struct mesh_drain_marks marks;

void tests_setup(void)
{
	strcpy(strrchr(path, '.'), ".XXXXXX");
	assert_non_null(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(folder >= 0);
}

void tests_teardown(void)
{
	mesh_drain_marks_read(folder, &marks);
	for (int i = 0; i < marks.num; i++)
		mesh_drain_mark_set(folder, marks.netdevs[i], false);
	close(folder);
	assert_int_equal(rmdir(path), 0);
}

TEST(made_and_removed)
{
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth0", true), 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth0", true), 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth1", true), 0);
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, 2);
	assert_true(mesh_drain_marks_have(&marks, "eth0"));
	assert_false(mesh_drain_marks_have(&marks, "eth"));
	assert_int_equal(mesh_drain_mark_set(folder, "eth0", false), 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth0", false), 0);
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, 1);
	assert_false(mesh_drain_marks_have(&marks, "eth0"));
}

/* Names that would leave the folder, or are none of a NIC. */
TEST(names)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "../eth0", "sixteen-letters0"};

	FOR_EACH(i, bad)
		assert_int_equal(mesh_drain_mark_set(folder, bad[i], true), -EINVAL);
	assert_int_equal(mesh_drain_mark_set(folder, "fifteen-letters", true), 0);
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, 1);
	assert_string_equal(marks.netdevs[0], "fifteen-letters");
}

static void file_make(const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* Other files are the pages of processes; a foreign one may have any name, and be in the way. */
TEST(other_files)
{
	static const char *const others[] = {"17-0123456789abcdef.mesh", "drain-", "drain",
					     "drain-a-name-that-no-nic-has"};
	char name[32];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		file_make(others[i]);
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		unlinkat(folder, others[i], 0);
	for (size_t i = 0; i < MESH_DRAIN_MARKS_MAX + 8; i++) {
		snprintf(name, sizeof(name), "drain-eth%zu", i);
		file_make(name);
	}
	mesh_drain_marks_read(folder, &marks);
	assert_int_equal(marks.num, MESH_DRAIN_MARKS_MAX);
	for (size_t i = 0; i < MESH_DRAIN_MARKS_MAX + 8; i++) {
		snprintf(name, sizeof(name), "drain-eth%zu", i);
		unlinkat(folder, name, 0);
	}
	/* Root may mark a NIC in the folder of a user who wants to stop it: nothing is opened. */
	assert_int_equal(mkfifoat(folder, "drain-eth8", 0600), 0);
	assert_int_equal(symlinkat("/etc/passwd", folder, "drain-eth9"), 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth8", true), 0);
	assert_int_equal(mesh_drain_mark_set(folder, "eth9", true), 0);
}

static bool is_readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, 0) == 1;
}

TEST(watched)
{
	int fd = mesh_drain_watch_open();

	assert_true(fd >= 0);
	assert_int_equal(mesh_drain_watch_add(fd, folder), 0);
	assert_false(is_readable(fd));
	mesh_drain_mark_set(folder, "eth0", true);
	assert_true(is_readable(fd));
	mesh_drain_watch_clear(fd);
	assert_false(is_readable(fd));
	mesh_drain_mark_set(folder, "eth0", false);
	assert_true(is_readable(fd));
	assert_int_equal(mesh_drain_watch_add(fd, -1), -ENOENT);
	mesh_descriptor_close(fd);
}

TEST(no_folder)
{
	assert_int_equal(mesh_drain_mark_set(folder, "eth0", true), 0);
	assert_int_equal(mesh_drain_marks_read(folder, &marks), 0);
	assert_true(mesh_drain_marks_read(-1, &marks) < 0);
	assert_true(mesh_drain_marks_have(&marks, "eth0"));
}
