/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h - the clock of the test programs, and how they wait. */
#ifndef TESTS_FUNCTIONAL_PAUSE_H
#define TESTS_FUNCTIONAL_PAUSE_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

/*
 * NCCL's thread polls without a pause. Here it does so for as long as an undelayed message takes,
 * and then sleeps between its looks: the processes of several tests share two CPUs.
 */
#define SPIN_MS 1
#define NAP_US 200

static inline uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void pause_us(unsigned int us)
{
	const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&pause, NULL);
}

/* For polling loops: @since is when the wait began, from clock_ms(). */
static inline void poll_pause(uint64_t since)
{
	if (clock_ms() - since < SPIN_MS)
		sched_yield();
	else
		pause_us(NAP_US);
}

#endif
