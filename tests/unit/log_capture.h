/* SPDX-License-Identifier: Apache-2.0 */
/* log_capture.h - a log sink that keeps the lines, for tests of messages to the user. */
#ifndef MESH_TESTS_LOG_CAPTURE_H
#define MESH_TESTS_LOG_CAPTURE_H

#include <stdbool.h>

#include "base/log.h"

/** Takes all lines from now on, of any thread, forgets the earlier ones. Look when none logs. */
void log_capture_start(void);

/** Gives the log back to stderr. */
void log_capture_stop(void);

/** How many lines of @level came since the start. */
int log_captured_lines(enum mesh_log_level level);

/** The lines of this level that have @part in them. */
int log_captured_times(enum mesh_log_level level, const char *part);

/** True if a line of @level has @part in it; prints what there is otherwise. */
bool log_captured(enum mesh_log_level level, const char *part);

#endif
