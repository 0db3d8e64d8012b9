/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - formats a line and hands it to the sink that the host program chose. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

static void log_to_stderr(enum mesh_log_level level, const char *file, int line, const char *text);

/* The mutable state of the log: atomic, because threads log while init runs. */
static _Atomic(mesh_log_sink) log_sink = log_to_stderr;

static void log_to_stderr(enum mesh_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level == MESH_LOG_WARN)
		fprintf(stderr, "mesh warning: %s\n", text);
}

void mesh_log_sink_set(mesh_log_sink sink)
{
	atomic_store(&log_sink, sink ? sink : log_to_stderr);
}

void mesh_log(enum mesh_log_level level, const char *file, int line, const char *format, ...)
{
	char text[MESH_LOG_LINE_MAX];
	int saved_errno = errno;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0)
		snprintf(text, sizeof(text), "(a log line could not be formatted: %s)", format);
	else if ((size_t)n >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	mesh_text_clean(text); /* settings and names may contain any byte */
	atomic_load (&log_sink)(level, file, line, text);
	errno = saved_errno;
}

bool mesh_log_limit_pass(struct mesh_log_limit *limit, unsigned int lines, uint64_t now_ms,
			 char *text)
{
	*text = '\0';
	if (!limit->since_ms ||
	    mesh_clock_elapsed_ms(limit->since_ms, now_ms) >= MESH_LOG_LIMIT_PERIOD_MS) {
		limit->since_ms = now_ms;
		limit->lines = 0;
	}
	if (limit->lines >= lines) {
		limit->held++;
		return false;
	}
	limit->lines++;
	if (limit->held)
		snprintf(text, MESH_LOG_LIMIT_TEXT_MAX, " (%u more such lines were left out)",
			 limit->held);
	limit->held = 0;
	return true;
}

void mesh_log_new(struct mesh_log_last *last, enum mesh_log_level level, const char *file, int line,
		  const char *format, ...)
{
	char text[MESH_LOG_LINE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (last && !strcmp(last->text, text))
		return;
	if (last)
		memcpy(last->text, text, sizeof(text));
	mesh_log(level, file, line, "%s", text);
}
