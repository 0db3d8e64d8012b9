/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one line of text for the user.
 *
 * Every layer logs through these macros. The sink decides where the lines go: the plugin passes
 * them to NCCL's logger, the tools write them to stderr.
 */
#ifndef MESH_BASE_LOG_H
#define MESH_BASE_LOG_H

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

#endif
