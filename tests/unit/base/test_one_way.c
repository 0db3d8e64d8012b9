/* SPDX-License-Identifier: Apache-2.0 */
/* test_one_way.c - the id of a secret. */
#include "base/one_way.h"

#include "unit.h"

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
