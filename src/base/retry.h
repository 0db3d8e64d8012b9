/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry.h - when something that is lost, or is not there, is tried again: one schedule for links,
 * for routes and for what may be better.
 */
#ifndef MESH_BASE_RETRY_H
#define MESH_BASE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Bounds of the pause between two attempts, which doubles. */
#define MESH_RETRY_MIN_MS 250
#define MESH_RETRY_MAX_MS 10000
/* What has held for so long is no longer one that breaks soon. */
#define MESH_RETRY_STEADY_MS 30000

/* Zeros at first: then the first attempt is due at once. */
struct mesh_retry {
	uint64_t up_ms;		/* since when it works; 0: it does not, or its loss has counted */
	uint64_t pause_ms;	/* the last pause; 0: there was none */
	uint64_t not_before_ms; /* when that is over */
};

/**
 * An attempt was in vain: the next one is due after a longer pause. All that have the same pause
 * are due at the same moments.
 */
static inline void mesh_retry_later(struct mesh_retry *retry, uint64_t now_ms)
{
	uint64_t pause_ms = retry->pause_ms ? 2 * retry->pause_ms : MESH_RETRY_MIN_MS;

	if (pause_ms > MESH_RETRY_MAX_MS)
		pause_ms = MESH_RETRY_MAX_MS;
	retry->pause_ms = pause_ms;
	retry->not_before_ms = ((now_ms + pause_ms / 2) / pause_ms + 1) * pause_ms;
}

/**
 * What worked is lost: after a short life, or one that was of no use, this counts as an attempt in
 * vain, else the schedule begins again.
 */
static inline void mesh_retry_lost(struct mesh_retry *retry, bool was_of_use, uint64_t lost_ms)
{
	bool steady = was_of_use && retry->up_ms &&
		      mesh_clock_elapsed_ms(retry->up_ms, lost_ms) >= MESH_RETRY_STEADY_MS;

	if (steady)
		retry->pause_ms = retry->not_before_ms = 0;
	else if (retry->up_ms || retry->pause_ms)
		mesh_retry_later(retry, lost_ms);
	retry->up_ms = 0;
}

/** When the next attempt is due. What worked, if it did, has been lost by now. */
static inline uint64_t mesh_retry_due_ms(struct mesh_retry *retry, uint64_t now_ms)
{
	if (retry->up_ms)
		mesh_retry_lost(retry, true, now_ms);
	return retry->not_before_ms;
}

#endif
