/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic time in nanoseconds, and how a loop waits that polls. */
#ifndef DRIVER_CLOCK_H
#define DRIVER_CLOCK_H

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

/** Nanoseconds since some start; never goes back. */
static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/*
 * In a loop that polls and has found nothing since @since_ns. NCCL's thread yields; with
 * TEST_NAP_US it sleeps so long from 1 ms on: the processes of several tests share a few
 * cores.
 */
static inline void poll_pause(uint64_t since_ns)
{
	const char *nap = now_ns() - since_ns > NS_PER_MS ? getenv("TEST_NAP_US") : NULL;
	struct timespec pause = {.tv_nsec = nap ? atol(nap) * 1000 : 0};

	if (!nap || nanosleep(&pause, NULL))
		sched_yield();
}

#endif
