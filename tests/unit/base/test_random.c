/* SPDX-License-Identifier: Apache-2.0 */
/* test_random.c - random bytes fill exactly what was asked for, and differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"

#define ROUNDS 64

static void test_fills(void **state)
{
	uint8_t bytes[256 + 16], ones[256], zeros[256];
	int i, j;

	(void)state;
	memset(ones, 0, sizeof(ones));
	memset(zeros, 0, sizeof(zeros));
	for (i = 0; i < ROUNDS; i++) {
		memset(bytes, 0x5a, sizeof(bytes));
		assert_int_equal(mesh_random(bytes, 256), 0);
		for (j = 0; j < 256; j++) {
			ones[j] |= bytes[j];
			zeros[j] |= (uint8_t)~bytes[j];
		}
		for (j = 256; j < 256 + 16; j++)
			assert_int_equal(bytes[j], 0x5a);
	}
	/* Each bit has been 0 and 1; by chance one has not in 1 of 2^52 runs. */
	for (j = 0; j < 256; j++) {
		assert_int_equal(ones[j], 0xff);
		assert_int_equal(zeros[j], 0xff);
	}
}

static void test_small(void **state)
{
	uint64_t values[ROUNDS];
	uint8_t guard = 0x5a;
	int i, j;

	(void)state;
	assert_int_equal(mesh_random(&guard, 0), 0);
	assert_int_equal(guard, 0x5a);
	for (i = 0; i < ROUNDS; i++) {
		assert_int_equal(mesh_random(&values[i], sizeof(values[i])), 0);
		for (j = 0; j < i; j++)
			assert_true(values[i] != values[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fills),
		cmocka_unit_test(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
