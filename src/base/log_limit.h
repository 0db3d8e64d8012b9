/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_limit.h - limits messages that an unknown client or a full table can cause at any rate: a few
 * lines in each period, and then the number of lines that were dropped. And those of attempts that
 * are repeated: one line for each reason.
 */
#ifndef MESH_BASE_LOG_LIMIT_H
#define MESH_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/* Milliseconds. */
#define MESH_LOG_LIMIT_PERIOD_MS 10000
/* Room for the text of mesh_log_limit_pass(). */
#define MESH_LOG_LIMIT_TEXT_MAX 48

/* One for each kind of message; initialized with zeros. The owner's lock protects it. */
struct mesh_log_limit {
	uint64_t since_ms;  /* start of the period; 0 before the first line */
	unsigned int lines; /* in this period */
	unsigned int held;  /* dropped since the last line */
};

/**
 * Decides whether a line may be written.
 *
 * @lines: the most lines in a period
 * @now_ms: mesh_clock_ms()
 * @text: receives the end of the line, MESH_LOG_LIMIT_TEXT_MAX bytes: "", or the number of lines
 *        dropped since the last one
 *
 * Returns true if the line may be written; otherwise the line is counted as dropped.
 */
bool mesh_log_limit_pass(struct mesh_log_limit *limit, unsigned int lines, uint64_t now_ms,
			 char *text);

/* The last line about something that is tried again and again; initialized with zeros. */
struct mesh_log_last {
	char text[MESH_LOG_LINE_MAX];
};

/**
 * Writes a line, unless it is the same as the last one. mesh_warn_new() writes it as WARN.
 *
 * @last: one thread at a time; NULL: each line is written
 */
void mesh_log_new(struct mesh_log_last *last, enum mesh_log_level level, const char *file, int line,
		  const char *format, ...) __attribute__((format(printf, 5, 6)));

#define mesh_warn_new(last, ...) mesh_log_new(last, MESH_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)

#endif
