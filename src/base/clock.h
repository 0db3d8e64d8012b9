/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the time: for deadlines, for measurements, for people. */
#ifndef MESH_BASE_CLOCK_H
#define MESH_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define MESH_NS_PER_MS 1000000ull

/** Nanoseconds of one of clock_gettime(2)'s clocks. */
static inline uint64_t mesh_clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/** Nanoseconds of a clock that never jumps; its zero is arbitrary. */
static inline uint64_t mesh_clock_ns(void)
{
	return mesh_clock_read_ns(CLOCK_MONOTONIC);
}

/** The same clock in milliseconds. */
static inline uint64_t mesh_clock_ms(void)
{
	return mesh_clock_ns() / MESH_NS_PER_MS;
}

/** Milliseconds from @since_ms to @now_ms; 0 if @since_ms was read after @now_ms. */
static inline uint64_t mesh_clock_elapsed_ms(uint64_t since_ms, uint64_t now_ms)
{
	return now_ms > since_ms ? now_ms - since_ms : 0;
}

/** Milliseconds since 1970, for people and files: this clock jumps. */
static inline uint64_t mesh_clock_wall_ms(void)
{
	return mesh_clock_read_ns(CLOCK_REALTIME) / MESH_NS_PER_MS;
}

#endif
