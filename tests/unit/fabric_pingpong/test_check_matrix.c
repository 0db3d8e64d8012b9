/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_check_matrix.c - fabric_pingpong's correctness matrix: with --check-every N each pair has
 * one in N of its sizes, and N pairs that follow each other have each phase once.
 */
#include "tests/fabric_pingpong/phase.h"

/* The program is not linked here, and check.c needs no more of it than these two. */
#include "tests/fabric_pingpong/check.c" /* NOLINT(bugprone-suspicious-include) */

#include "unit.h"

#define PHASES_MAX 256

void phase_fit(struct phase *phase, const struct options *options)
{
}

enum phase_protocol phase_protocol_for(uint64_t size)
{
	return size <= 8192 ? PHASE_LL : PHASE_SIMPLE;
}

static bool same(const struct phase *a, const struct phase *b)
{
	return a->size == b->size && a->count == b->count && a->window == b->window &&
	       a->offset == b->offset && a->order == b->order && a->protocol == b->protocol &&
	       a->exact == b->exact && a->mixed == b->mixed;
}

/* Whether every phase of the whole matrix is in the parts of @every pairs, from @first on, once. */
static void check_parts(struct options options, uint32_t every, uint32_t first)
{
	size_t all, num = 0, i, j, seen[PHASES_MAX] = {0};
	struct phase whole, own;

	options.check_every = 1;
	all = check_num_phases(&options, 0);
	assert_true(all <= PHASES_MAX);
	for (uint32_t pair = first; pair < first + every; pair++) {
		options.check_every = every;
		num += check_num_phases(&options, pair);
		for (i = 0; i < check_num_phases(&options, pair); i++) {
			options.check_every = every;
			own = check_phase(&options, pair, i);
			options.check_every = 1;
			for (j = 0; j < all; j++) {
				whole = check_phase(&options, pair, j);
				seen[j] += same(&whole, &own);
			}
			options.check_every = every;
		}
	}
	assert_int_equal(num, all);
	for (j = 0; j < all; j++)
		assert_int_equal(seen[j], 1);
}

TEST(parts)
{
	static const uint64_t largest[] = {0, 8, 8192, 20480, MIB + 1};
	struct options options = {0};

	FOR_EACH(i, largest) {
		options.check_max = largest[i];
		for (uint32_t every = 1; every <= 64; every++) {
			check_parts(options, every, 0);
			check_parts(options, every, 7);
		}
	}
}

/* Without the option each pair has all: 41 sizes in four manners, and four mixes. */
TEST(whole)
{
	struct options options = {.check_every = 1, .check_max = MIB + 1};

	assert_int_equal(check_num_phases(&options, 0), 41 * 4 + 4);
	assert_int_equal(check_num_phases(&options, 5), 41 * 4 + 4);
	assert_int_equal(check_phase(&options, 5, 4).size, 1);
	assert_true(check_phase(&options, 5, 41 * 4).mixed);
}
