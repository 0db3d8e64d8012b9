/* SPDX-License-Identifier: Apache-2.0 */
/* test_one_way.c - the id of a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/one_way.h"

/* The first of the vectors of SipHash's authors: the key 00 01 ... 0f, and no message. */
static void test_vector(void **state)
{
	const uint64_t secret[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

	(void)state;
	assert_true(mesh_one_way(secret) == 0x726fdb47dd0e0e31u);
}

static void test_both_halves_count(void **state)
{
	const uint64_t none[2] = {0, 0}, first[2] = {1, 0}, second[2] = {0, 1};

	(void)state;
	assert_true(mesh_one_way(none) != mesh_one_way(first));
	assert_true(mesh_one_way(none) != mesh_one_way(second));
	assert_true(mesh_one_way(first) != mesh_one_way(second));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_both_halves_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
