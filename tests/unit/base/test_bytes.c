/* SPDX-License-Identifier: Apache-2.0 */
/* test_bytes.c - a copy in pieces has every byte, and no other. */
#include "base/bytes.h"

#include "unit.h"

#define ROOM (3 * MESH_BYTES_PIECE)
#define MARGIN 64
#define UNTOUCHED 0xee

static uint8_t source[ROOM];
static uint8_t target[MARGIN + ROOM + MARGIN];

static void copy_check(size_t size, size_t offset)
{
	size_t i;

	memset(target, UNTOUCHED, sizeof(target));
	mesh_bytes_copy(target + offset, source, size);
	for (i = 0; i < sizeof(target); i++) {
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
	size_t i, offset;

	for (i = 0; i < ROOM; i++)
		source[i] = (uint8_t)(i ^ i >> 8);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (offset = 0; offset < MARGIN; offset += 7)
			copy_check(sizes[i], offset);
	}
}
