/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the time that deadlines are measured in. */
#ifndef MESH_BASE_CLOCK_H
#define MESH_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Milliseconds of a clock that never jumps; its zero means nothing. */
static inline uint64_t mesh_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/** The same clock in nanoseconds. */
static inline uint64_t mesh_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
