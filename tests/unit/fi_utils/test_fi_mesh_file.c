/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_file.c - whole files: read, and written to the end. */
#include "common/file.h"

#include "unit.h"

/* More than the first buffer of both sides. */
#define SIZE 300000

TEST(written_and_read)
{
	char path[] = "/tmp/mesh-file-XXXXXX", *text;
	size_t size, i;
	FILE *file;

	file = fdopen(mkstemp(path), "w");
	assert_non_null(file);
	for (i = 0; i < SIZE; i++)
		fputc('a' + (int)(i % 7), file);
	assert_int_equal(file_close(file), 0);
	text = file_read("test", path, &size);
	unlink(path);
	assert_non_null(text);
	assert_int_equal(size, SIZE);
	for (i = 0; i < SIZE; i++)
		assert_int_equal(text[i], 'a' + (int)(i % 7));
	assert_int_equal(text[SIZE], '\0');
	free(text);
}

TEST(unreadable)
{
	size_t size;

	assert_null(file_read("test", "/nowhere/at/all", &size));
	assert_null(file_read("test", "/proc", &size));
}

/* What is lost only when the file is closed, and what was lost before and forgotten. */
TEST(full)
{
	FILE *file = fopen("/dev/full", "w");

	if (!file) {
		skip();
		return;
	}
	fputs("x", file);
	assert_int_equal(file_close(file), -ENOSPC);
	file = fopen("/dev/full", "w");
	fputs("x", file);
	fflush(file);
	assert_true(file_close(file) < 0);
}
