/* SPDX-License-Identifier: Apache-2.0 */
/* test_array.c - arrays that grow by one. */
#include "base/array.h"

#include "unit.h"

#define ELEMENTS 1000

/* Under ASan a missing byte shows. */
TEST(grows)
{
	uint64_t *array = NULL, *grown;
	size_t i, moves = 0;

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

TEST(keeps_its_place)
{
	char *array = malloc(8);

	assert_ptr_equal(mesh_array_room(array, 3, 1), array);
	assert_ptr_equal(mesh_array_room(array, 7, 1), array);
	free(array);
}
