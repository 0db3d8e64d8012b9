/* SPDX-License-Identifier: Apache-2.0 */
/* path_retry.c - when a path that has lost its circuit may look for another one. */
#include "base/clock.h"
#include "transport/path_retry.h"

void mesh_path_retry_later(struct mesh_path_retry *retry, uint64_t now_ms)
{
	uint64_t pause_ms = retry->pause_ms ? 2 * retry->pause_ms : MESH_RETRY_MIN_MS;

	if (pause_ms > MESH_RETRY_MAX_MS)
		pause_ms = MESH_RETRY_MAX_MS;
	retry->pause_ms = pause_ms;
	retry->not_before_ms = ((now_ms + pause_ms / 2) / pause_ms + 1) * pause_ms;
}

uint64_t mesh_path_retry_due_ms(struct mesh_path_retry *retry, uint64_t now_ms)
{
	uint64_t up_ms = retry->up_ms;

	retry->up_ms = 0;
	if (up_ms && mesh_clock_elapsed_ms(up_ms, now_ms) < MESH_RETRY_STEADY_MS)
		mesh_path_retry_later(retry, now_ms);
	else if (up_ms)
		retry->pause_ms = retry->not_before_ms = 0;
	return retry->not_before_ms;
}
