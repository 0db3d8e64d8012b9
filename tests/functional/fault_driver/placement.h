/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - a thread that polls flags in a receive buffer while data lands, as the GPU does. */
#ifndef FAULT_DRIVER_PLACEMENT_H
#define FAULT_DRIVER_PLACEMENT_H

#include "transfer.h"

/*
 * LL: words of 8 bytes, data in the lower half and the flag in the upper one, read at once.
 * LL128: lines of 128 bytes, whose last 8 bytes are the flag of the other 120.
 * The flag is the number of the round, so that what is left of older rounds is never taken.
 */
#define LINE_WORDS 16

struct watch {
	const uint64_t *words;
	size_t num_units; /* LL words or LL128 lines */
	bool ll128;
	uint32_t round;
	uint64_t violations;
	size_t first_violation; /* unit */
	bool stop;		/* atomic */
	bool ready;		/* atomic */
};

static uint64_t unit_data(uint32_t round, size_t word)
{
	uint64_t x = (word + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)round << 33;

	return x ^ x >> 29;
}

static void units_fill(uint64_t *words, size_t num_words, bool ll128, uint32_t round)
{
	for (size_t i = 0; i < num_words; i++) {
		if (!ll128)
			words[i] = (uint64_t)round << 32 | (uint32_t)unit_data(round, i);
		else
			words[i] = i % LINE_WORDS == LINE_WORDS - 1 ? round : unit_data(round, i);
	}
}

/* 1 if the unit has its flag and data, 0 if no flag yet, -1 if the flag came before the data. */
static int unit_look(const struct watch *watch, size_t unit)
{
	const uint64_t *line = watch->words + unit * LINE_WORDS;
	uint64_t word;

	if (!watch->ll128) {
		word = __atomic_load_n(watch->words + unit, __ATOMIC_ACQUIRE);
		if (word >> 32 != watch->round)
			return 0;
		return (uint32_t)word == (uint32_t)unit_data(watch->round, unit) ? 1 : -1;
	}
	/*
	 * The GPU loads the line as a whole. Here it keeps the data in this CPU's cache, so that
	 * the writer's stores are slow, and one that is out of order can be seen.
	 */
	for (size_t i = 0; i < LINE_WORDS - 1; i += LINE_WORDS / 4)
		(void)*(const volatile uint64_t *)(line + i);
	if (__atomic_load_n(line + LINE_WORDS - 1, __ATOMIC_ACQUIRE) != watch->round)
		return 0;
	for (size_t i = 0; i < LINE_WORDS - 1; i++) {
		word = __atomic_load_n(line + i, __ATOMIC_RELAXED);
		if (word != unit_data(watch->round, unit * LINE_WORDS + i))
			return -1;
	}
	return 1;
}

static int watch_look(struct watch *watch, size_t unit)
{
	int seen = unit_look(watch, unit);

	if (seen < 0 && !watch->violations++)
		watch->first_violation = unit;
	return seen;
}

/* Rounds differ in where they look: at the front, at the last unit first, or all over. */
static void *watch_main(void *arg)
{
	struct watch *watch = arg;
	size_t left = watch->num_units, unit, i = 0;

	__atomic_store_n(&watch->ready, true, __ATOMIC_RELEASE);
	while (left && !__atomic_load_n(&watch->stop, __ATOMIC_RELAXED)) {
		switch (watch->round % 3) {
		case 0:
			unit = watch->num_units - left;
			break;
		case 1:
			unit = left - 1;
			break;
		default:
			unit = (i++ * 7919) % watch->num_units;
			/*
			 * The thread reads every unit again and again until the last one has
			 * arrived.
			 */
			watch_look(watch, unit);
			if (unit_look(watch, watch->num_units - 1))
				left = 0;
			continue;
		}
		if (watch_look(watch, unit))
			left--;
	}
	return NULL;
}

static int round_receive(struct driver *d, const struct registration *registration,
			 struct watch *watch, size_t size, size_t capacity)
{
	struct watch result = *watch;
	int sizes[64] = {0}, outcome;
	pthread_t thread;
	void *request;

	result.violations = 0;
	if (pthread_create(&thread, NULL, watch_main, &result))
		return wrong("no thread");
	while (!__atomic_load_n(&result.ready, __ATOMIC_ACQUIRE))
		sched_yield();
	outcome = message_start(d, &d->comms[registration->comm], registration, 0, capacity,
				&request);
	if (!outcome)
		outcome = request_wait(d, request, sizes);
	if (!outcome && (size_t)sizes[0] != size)
		outcome = wrong("%d bytes came, not %zu", sizes[0], size);
	/* Everything is there: the thread finds its last flag, or the data is wrong. */
	if (outcome)
		__atomic_store_n(&result.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (result.violations)
		printf("note round %u: %" PRIu64 " flags before their data, first at byte %zu "
		       "of %zu\n",
		       result.round, result.violations,
		       result.first_violation * (result.ll128 ? 128 : 8), size);
	watch->violations += result.violations;
	return outcome;
}

/* placement M ll|ll128 SIZE CAPACITY ROUNDS: the same on both sides. Violations are counted. */
static int command_placement(struct driver *d, int argc, char **argv)
{
	const struct registration *registration = &d->registrations[slot(argv[1])];
	const struct comm *comm = &d->comms[registration->comm];
	size_t size = number(argv[3]), capacity = number(argv[4]);
	uint64_t *words = (uint64_t *)(void *)d->buffers[registration->buffer].data;
	uint32_t rounds = (uint32_t)number(argv[5]);
	struct watch watch = {.words = words, .ll128 = !strcmp(argv[2], "ll128")};
	int sizes[64], outcome = OUTCOME_OK;
	void *request;

	watch.num_units = size / (watch.ll128 ? 128 : 8);
	memset(words, 0, capacity);
	for (watch.round = 1; watch.round <= rounds && !outcome; watch.round++) {
		if (!comm->sending) {
			outcome = round_receive(d, registration, &watch, size, capacity);
			continue;
		}
		units_fill(words, size / 8, watch.ll128, watch.round);
		outcome = message_start(d, comm, registration, 0, size, &request);
		if (!outcome)
			outcome = request_wait(d, request, sizes);
	}
	/* The test collects these lines: one size that fails does not end the others. */
	if (!comm->sending)
		printf("PLACEMENT %s, %zu bytes into %zu: %" PRIu64 " flags before their data in "
		       "%u rounds\n",
		       argv[2], size, capacity, watch.violations, watch.round - 1);
	return outcome;
}

#endif
