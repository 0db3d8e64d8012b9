/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h - the clock of the test programs, and how they wait. */
#ifndef TESTS_FUNCTIONAL_PAUSE_H
#define TESTS_FUNCTIONAL_PAUSE_H

#include <stdint.h>
#include <time.h>

#include "../driver/clock.h"

/* Between two looks, in microseconds. */
#define NAP_US 200

static inline uint64_t clock_ms(void)
{
	return now_ns() / NS_PER_MS;
}

static inline void pause_us(unsigned int us)
{
	const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&pause, NULL);
}

#endif
