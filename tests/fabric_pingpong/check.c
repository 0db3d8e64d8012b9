/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the correctness matrix: which phases prove that bytes arrive right. */
#include "phase.h"

#define KIB ((uint64_t)1024)
#define MIB (KIB * KIB)

#define AGAIN_MAX 8 /* slots that are used twice */

/* Around the multiples that plugins cut, align or switch protocols at. */
static const uint64_t sizes[] = {
	0,
	1,
	7,
	8,
	9,
	63,
	64,
	65,
	127,
	128,
	129,
	255,
	256,
	257,
	1023,
	1024,
	1025,
	2047,
	2049,
	4095,
	4096,
	4097,
	8191,
	8192,
	8193,
	16 * KIB - 1,
	16 * KIB + 1,
	32 * KIB,
	64 * KIB - 1,
	64 * KIB,
	64 * KIB + 1,
	128 * KIB - 1,
	128 * KIB,
	128 * KIB + 1,
	256 * KIB,
	256 * KIB + 9,
	512 * KIB - 1,
	512 * KIB,
	MIB - 1,
	MIB,
	MIB + 1,
};

/* The manners in which each size is sent. */
static const struct manner {
	enum phase_order order;
	uint32_t window;
	uint32_t offset; /* bytes */
	bool exact;
	bool as_nccl; /* in the protocol of that size instead of SIMPLE */
} manners[] = {
	{PHASE_EARLY, 8, 0, false, false}, /* receives first, larger than the message */
	{PHASE_LATE, 8, 3, true, false},   /* sends first, odd address, exact receive */
	{PHASE_FREE, 32, 1, false, false}, /* as many as a comm can have */
	{PHASE_FREE, 8, 0, false, true},   /* optional receive completion */
};

/* Sizes that change with each message, with zero among them. */
static const struct {
	uint64_t size, count;
	uint32_t window;
	enum phase_order order;
	bool exact;
} mixes[] = {
	{MIB, 64, 8, PHASE_FREE, false},
	{8192, 300, 32, PHASE_FREE, true},
	{8192, 64, 32, PHASE_LATE, false},
	{128 * KIB, 64, 8, PHASE_EARLY, false},
};

#define NUM_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define NUM_MANNERS (sizeof(manners) / sizeof(manners[0]))
#define NUM_MIXES (sizeof(mixes) / sizeof(mixes[0]))

static size_t num_sizes(const struct options *options)
{
	size_t n = 0;

	while (n < NUM_SIZES && sizes[n] <= options->check_max)
		n++;
	return n;
}

/* How many of the first @n items the pair has: of each check_every items one. */
static size_t num_own(const struct options *options, uint32_t pair, size_t n)
{
	size_t first = pair % options->check_every;

	return n > first ? (n - first - 1) / options->check_every + 1 : 0;
}

size_t check_num_phases(const struct options *options, uint32_t pair)
{
	size_t n = num_sizes(options), own = num_own(options, pair, n);

	return own * NUM_MANNERS + num_own(options, pair, n + NUM_MIXES) - own;
}

static struct phase size_phase(uint64_t size, const struct manner *manner)
{
	struct phase phase = {
		.kind = PHASE_CHECK,
		.protocol = manner->as_nccl ? phase_protocol_for(size) : PHASE_SIMPLE,
		.order = manner->order,
		.full = true,
		/* A receive of no bytes at all is nothing that NCCL posts. */
		.exact = manner->exact && size,
		.window = manner->window,
		.offset = manner->offset,
		.size = size,
	};

	return phase;
}

static struct phase mixed_phase(const struct options *options, size_t index)
{
	struct phase phase = {
		.kind = PHASE_CHECK,
		.protocol = PHASE_SIMPLE,
		.order = mixes[index].order,
		.full = true,
		.exact = mixes[index].exact,
		.mixed = true,
		.window = mixes[index].window,
		.size = mixes[index].size,
		.count = mixes[index].count,
	};

	if (phase.size > options->check_max)
		phase.size = options->check_max;
	return phase;
}

struct phase check_phase(const struct options *options, uint32_t pair, size_t index)
{
	size_t n = num_sizes(options), own = num_own(options, pair, n), item;
	struct phase phase;

	/* Which of the pair's items: its sizes come first, each with all manners. */
	item = index < own * NUM_MANNERS ? index / NUM_MANNERS : index - own * (NUM_MANNERS - 1);
	item = pair % options->check_every + item * options->check_every;
	if (item >= n) {
		phase = mixed_phase(options, item - n);
		phase_fit(&phase, options);
		return phase;
	}
	phase = size_phase(sizes[item], &manners[index % NUM_MANNERS]);
	phase_fit(&phase, options);
	/* Enough for slots to be used again, eight of them where that is cheap. */
	phase.count = phase.window + 3;
	if (phase.size <= 64 * KIB)
		phase.count += phase.window < AGAIN_MAX ? phase.window : AGAIN_MAX;
	return phase;
}
