/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one line of text for the user.
 *
 * Every layer logs through these macros. The sink decides where the lines go: the plugin passes
 * them to NCCL's logger, the tools write them to stderr.
 */
#ifndef MESH_BASE_LOG_H
#define MESH_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum mesh_log_level {
	MESH_LOG_WARN, /* something failed, or the user must act: log it once */
	MESH_LOG_INFO, /* what was chosen and why */
	MESH_LOG_TRACE /* for developers */
};

/* A longer line is cut and marked with "...". NCCL's own limit is 1,024 bytes a line. */
#define MESH_LOG_LINE_MAX 960

/**
 * Receives each finished line.
 *
 * @level: how important the line is
 * @file: source file of the caller, static storage
 * @line: source line of the caller
 * @text: the line, without a newline; valid during the call only
 *
 * Called from any thread, and from several at once.
 */
typedef void (*mesh_log_sink)(enum mesh_log_level level, const char *file, int line,
			      const char *text);

/** Sends all later lines to @sink; NULL restores stderr, which shows WARN lines only. */
void mesh_log_sink_set(mesh_log_sink sink);

/** Formats one line and passes it to the sink. errno is preserved. Use the macros below. */
void mesh_log(enum mesh_log_level level, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define mesh_warn(...) mesh_log(MESH_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define mesh_info(...) mesh_log(MESH_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define mesh_trace(...) mesh_log(MESH_LOG_TRACE, __FILE__, __LINE__, __VA_ARGS__)

/*
 * Limits messages that an unknown client or a full table can cause at any rate: a few lines in each
 * period, and then the number of lines that were dropped. And those of attempts that are repeated:
 * one line for each reason.
 */

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
