/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.c - limits the rate of one kind of message. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log_limit.h"

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
