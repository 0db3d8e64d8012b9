/* SPDX-License-Identifier: Apache-2.0 */
/* test_array.c - arrays that grow by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/array.h"

#define ELEMENTS 1000

/* Under ASan a missing byte shows. */
static void test_grows(void **state)
{
	uint64_t *array = NULL, *grown;
	size_t i, moves = 0;

	(void)state;
	for (i = 0; i < ELEMENTS; i++) {
		grown = mesh_array_room(array, i, sizeof(*array));
		assert_non_null(grown);
		moves += grown != array;
		array = grown;
		array[i] = i;
	}
	for (i = 0; i < ELEMENTS; i++)
		assert_int_equal(array[i], i);
	assert_true(moves <= 11); /* at 0, 1, 2, 4, ... 512 */
	free(array);
}

static void test_keeps_its_place(void **state)
{
	char *array = malloc(8);

	(void)state;
	assert_ptr_equal(mesh_array_room(array, 3, 1), array);
	assert_ptr_equal(mesh_array_room(array, 7, 1), array);
	free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_keeps_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
