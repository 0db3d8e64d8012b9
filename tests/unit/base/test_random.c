/* SPDX-License-Identifier: Apache-2.0 */
/* test_random.c - random bytes fill exactly what was asked for, and differ; the id of a secret. */
#include "base/random.h"

#include "unit.h"

#define ROUNDS 64

TEST(fills)
{
	uint8_t bytes[256 + 16], ones[256], zeros[256];

	memset(ones, 0, sizeof(ones));
	memset(zeros, 0, sizeof(zeros));
	for (int i = 0; i < ROUNDS; i++) {
		memset(bytes, 0x5a, sizeof(bytes));
		assert_int_equal(mesh_random(bytes, 256), 0);
		for (int j = 0; j < 256; j++) {
			ones[j] |= bytes[j];
			zeros[j] |= (uint8_t)~bytes[j];
		}
		for (int j = 256; j < 256 + 16; j++)
			assert_int_equal(bytes[j], 0x5a);
	}
	/* Each bit has been 0 and 1; by chance one has not in 1 of 2^52 runs. */
	for (int j = 0; j < 256; j++) {
		assert_int_equal(ones[j], 0xff);
		assert_int_equal(zeros[j], 0xff);
	}
}

TEST(small)
{
	uint64_t values[ROUNDS];
	uint8_t guard = 0x5a;

	assert_int_equal(mesh_random(&guard, 0), 0);
	assert_int_equal(guard, 0x5a);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(mesh_random(&values[i], sizeof(values[i])), 0);
		for (int j = 0; j < i; j++)
			assert_true(values[i] != values[j]);
	}
}

/* The first of the vectors of SipHash's authors: the key 00 01 ... 0f, and no message. */
TEST(vector)
{
	const uint64_t secret[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

	assert_true(mesh_one_way(secret) == 0x726fdb47dd0e0e31u);
}

TEST(both_halves_count)
{
	const uint64_t none[2] = {0, 0}, first[2] = {1, 0}, second[2] = {0, 1};

	assert_true(mesh_one_way(none) != mesh_one_way(first));
	assert_true(mesh_one_way(none) != mesh_one_way(second));
	assert_true(mesh_one_way(first) != mesh_one_way(second));
}
