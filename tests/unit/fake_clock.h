/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_clock.h - a clock in place of the C library's, for the program that includes this: each look
 * takes a microsecond, and a sleep its time. The window of a flow, which follows measured times, is
 * then the same on every machine.
 */
#ifndef MESH_TESTS_FAKE_CLOCK_H
#define MESH_TESTS_FAKE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static _Atomic(uint64_t) fake_clock_us = 1000000; /* 0 stands for no time */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t us = ++fake_clock_us;

	now->tv_sec = (time_t)(us / 1000000);
	now->tv_nsec = (long)(us % 1000000 * 1000);
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	fake_clock_us += (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_nsec / 1000;
	return 0;
}

#endif
