/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c - arrays that grow by one, and copies of messages. */
#include "base/memory.h"

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

#define ROOM (3 * MESH_BYTES_PIECE)
#define MARGIN 64
#define UNTOUCHED 0xee

static uint8_t source[ROOM];
static uint8_t target[MARGIN + ROOM + MARGIN];

static void copy_check(size_t size, size_t offset)
{
	memset(target, UNTOUCHED, sizeof(target));
	mesh_bytes_copy(target + offset, source, size);
	for (size_t i = 0; i < sizeof(target); i++) {
		if (i >= offset && i < offset + size)
			assert_int_equal(target[i], source[i - offset]);
		else
			assert_int_equal(target[i], UNTOUCHED);
	}
}

TEST(every_byte)
{
	static const size_t sizes[] = {
		0,
		1,
		MESH_BYTES_PIECE - 1,
		MESH_BYTES_PIECE,
		MESH_BYTES_PIECE + 1,
		2 * MESH_BYTES_PIECE,
		2 * MESH_BYTES_PIECE + 24,
		ROOM,
	};

	for (size_t i = 0; i < ROOM; i++)
		source[i] = (uint8_t)(i ^ i >> 8);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t offset = 0; offset < MARGIN; offset += 7)
			copy_check(sizes[i], offset);
	}
}
