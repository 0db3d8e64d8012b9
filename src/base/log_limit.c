/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.c - limits the rate of one kind of message. */
#include <stdio.h>

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
