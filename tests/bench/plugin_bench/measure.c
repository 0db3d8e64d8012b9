/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - wall clock, CPU seconds of all ranks, and how many messages fill the time. */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"
#include "clock.h"

#define COUNT_START 16
#define COUNT_MAX 4000000ull
#define SILENCE_NS (60 * NS_PER_S)

static void look(struct usage *usage)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	usage->user = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
	usage->system = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
	usage->wall = (double)now_ns() / (double)NS_PER_S;
}

void usage_begin(struct bench *bench, struct usage *usage)
{
	meet_barrier(&bench->meet);
	look(usage);
}

void usage_end(struct bench *bench, struct usage *usage)
{
	struct usage now, all[MEET_RANKS_MAX];

	look(&now);
	now.user -= usage->user;
	now.system -= usage->system;
	now.wall -= usage->wall;
	meet_gather(&bench->meet, &now, sizeof(now), all);
	*usage = (struct usage){0};
	/* The longest of all ranks counts: all bytes have arrived by then. */
	for (int i = 0; i < bench->ranks; i++) {
		usage->user += all[i].user;
		usage->system += all[i].system;
		if (all[i].wall > usage->wall)
			usage->wall = all[i].wall;
	}
}

uint64_t bench_calibrate(struct bench *bench, struct usage *usage, uint64_t least,
			 void (*part)(void *argument, uint64_t count), void *argument)
{
	uint64_t count = least < COUNT_START ? least : COUNT_START, next;
	double more;

	for (;;) {
		usage_begin(bench, usage);
		part(argument, count);
		usage_end(bench, usage);
		/* Every rank has the same figures, and so the same result. */
		if ((usage->wall >= bench->seconds / 2 && count >= least) || count == COUNT_MAX)
			return count;
		more = bench->seconds / usage->wall;
		next = (uint64_t)((double)count * (more < 16 ? more : 16)) + 1;
		if (next < least)
			next = least;
		count = next < COUNT_MAX ? next : COUNT_MAX;
	}
}

static struct timespec idle_pause;

void bench_pause_set(unsigned int us)
{
	idle_pause.tv_nsec = (long)us * 1000;
	/* The kernel would add 50 us otherwise. */
	if (us && prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul))
		fatal("the kernel does not let us sleep for %u us", us);
}

void bench_idle(uint64_t idle, unsigned int yield)
{
	static uint64_t since;

	if (idle_pause.tv_nsec)
		nanosleep(&idle_pause, NULL);
	else if (idle % yield == 0)
		sched_yield();
	if (idle == 1)
		since = 0;
	if (idle % 1048576)
		return;
	if (!since)
		since = now_ns();
	else if (now_ns() - since > SILENCE_NS)
		fatal("nothing has moved for 60 s");
}
