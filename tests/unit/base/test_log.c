/* SPDX-License-Identifier: Apache-2.0 */
/* test_log.c - one line to the sink, cut where it is too long, and errno left alone. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"

#include "unit.h"

#define THREADS 4
#define LINES_EACH 500

static struct {
	enum mesh_log_level level;
	const char *file;
	int line;
	char text[2 * MESH_LOG_LINE_MAX];
	_Atomic(int) calls, broken;
} last;

static void sink_keep(enum mesh_log_level level, const char *file, int line, const char *text)
{
	last.level = level;
	last.file = file;
	last.line = line;
	snprintf(last.text, sizeof(last.text), "%s", text);
	atomic_fetch_add(&last.calls, 1);
	errno = EBADMSG; /* a sink may do anything */
}

static void sink_count(enum mesh_log_level level, const char *file, int line, const char *text)
{
	int a, b;

	atomic_fetch_add(&last.calls, 1);
	if (sscanf(text, "thread %d says %d", &a, &b) != 2 || a != b)
		atomic_fetch_add(&last.broken, 1);
}

TEST(sink)
{
	int line;

	mesh_log_sink_set(sink_keep);
	line = __LINE__ + 1;
	mesh_warn("%s to %d", "node1", 42);
	assert_string_equal(last.text, "node1 to 42");
	assert_int_equal(last.level, MESH_LOG_WARN);
	assert_int_equal(last.line, line);
	assert_non_null(strstr(last.file, "test_log.c"));
	mesh_info("info");
	assert_int_equal(last.level, MESH_LOG_INFO);
	mesh_trace("trace");
	assert_int_equal(last.level, MESH_LOG_TRACE);
	assert_string_equal(last.text, "trace");
	mesh_log_sink_set(NULL);
}

/* Whatever a setting, a file or a node's name contains: one line, without escape sequences. */
TEST(text_is_printable)
{
	mesh_log_sink_set(sink_keep);
	mesh_warn("NICS=%s, %s", "\033[31mred\a\n\x7f\x9b", "ab");
	assert_string_equal(last.text, "NICS=?[31mred????, ab");
	mesh_log_sink_set(NULL);
}

/*
 * A limited number of lines in each period; the first line of the next one has the number of those
 * dropped.
 */
TEST(limit)
{
	struct mesh_log_limit limit = {0};
	char text[MESH_LOG_LIMIT_TEXT_MAX];

	for (int i = 0; i < 2; i++) {
		assert_true(mesh_log_limit_pass(&limit, 2, 1000, text));
		assert_string_equal(text, "");
	}
	for (int i = 0; i < 300; i++)
		assert_false(mesh_log_limit_pass(&limit, 2, 999 + MESH_LOG_LIMIT_PERIOD_MS, text));
	assert_true(mesh_log_limit_pass(&limit, 2, 1000 + MESH_LOG_LIMIT_PERIOD_MS, text));
	assert_string_equal(text, " (300 more such lines were left out)");
	assert_true(mesh_log_limit_pass(&limit, 2, 1000 + MESH_LOG_LIMIT_PERIOD_MS, text));
	assert_string_equal(text, "");
	limit.held = UINT_MAX;
	assert_true(mesh_log_limit_pass(&limit, 2, 1000 + 2 * MESH_LOG_LIMIT_PERIOD_MS, text));
	assert_string_equal(text, " (4294967295 more such lines were left out)");
}

TEST(errno_kept)
{
	mesh_log_sink_set(sink_keep);
	errno = EXDEV;
	mesh_info("text");
	assert_int_equal(errno, EXDEV);
	errno = 0;
	mesh_info("text");
	assert_int_equal(errno, 0);
	mesh_log_sink_set(NULL);
}

/* The longest line is whole; one more character and it ends in dots. */
TEST(cut)
{
	char text[2 * MESH_LOG_LINE_MAX];

	mesh_log_sink_set(sink_keep);
	memset(text, 'x', sizeof(text));
	text[MESH_LOG_LINE_MAX - 1] = '\0';
	mesh_info("%s", text);
	assert_string_equal(last.text, text);
	text[MESH_LOG_LINE_MAX - 1] = 'x';
	text[MESH_LOG_LINE_MAX] = '\0';
	mesh_info("%s", text);
	assert_int_equal(strlen(last.text), MESH_LOG_LINE_MAX - 1);
	assert_string_equal(last.text + MESH_LOG_LINE_MAX - 4, "...");
	assert_int_equal(last.text[MESH_LOG_LINE_MAX - 5], 'x');
	text[sizeof(text) - 1] = '\0';
	mesh_info("%s", text);
	assert_int_equal(strlen(last.text), MESH_LOG_LINE_MAX - 1);
	mesh_log_sink_set(NULL);
}

/* Runs @log with stderr in a file; @text holds what came out. */
static void stderr_read(void (*log)(void), char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	log();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
}

static void log_each_level(void)
{
	mesh_warn("one");
	mesh_info("two");
	mesh_trace("three");
}

TEST(stderr)
{
	char text[512];

	mesh_log_sink_set(NULL);
	stderr_read(log_each_level, text, sizeof(text));
	assert_string_equal(text, "mesh warning: one\n");
}

static void *thread_log(void *arg)
{
	int i, number = *(int *)arg;

	for (i = 0; i < LINES_EACH; i++)
		mesh_info("thread %d says %d", number, number);
	return NULL;
}

TEST(threads)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], i;

	atomic_store(&last.calls, 0);
	mesh_log_sink_set(sink_count);
	for (i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, thread_log, &numbers[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	mesh_log_sink_set(NULL);
	assert_int_equal(last.calls, THREADS * LINES_EACH);
	assert_int_equal(last.broken, 0);
}
