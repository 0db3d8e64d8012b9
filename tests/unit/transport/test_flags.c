/* SPDX-License-Identifier: Apache-2.0 */
/* test_flags.c - which messages have flags; lines without them, and the flags, make the whole. */
#include "transport/data.h"

#include "unit.h"

#define WORDS_OF_LINE (MESH_LINE_BYTES / 8)
#define LINES 64

/* Lines of @lines with @flag, and other data between. */
static void lines_fill(uint64_t *words, size_t lines, uint64_t flag)
{
	for (size_t i = 0; i < lines * WORDS_OF_LINE; i++)
		words[i] = i % WORDS_OF_LINE == WORDS_OF_LINE - 1 ? flag : ~(uint64_t)i;
}

/* Only what NCCL's LL128 sends is taken for it: whole lines with one flag, the number of a step. */
TEST(lines_flag)
{
	static uint64_t words[LINES * WORDS_OF_LINE];
	const size_t size = sizeof(words);

	lines_fill(words, LINES, 7);
	assert_int_equal(mesh_flag_find(words, size), 7);
	assert_int_equal(mesh_flag_find(words, MESH_LINE_BYTES), 7);
	assert_int_equal(mesh_flag_find(words, size - 8), 0);
	assert_int_equal(mesh_flag_find(words, 0), 0);
	for (size_t line = 0; line < LINES; line++) {
		words[line * WORDS_OF_LINE + WORDS_OF_LINE - 1] ^= 1;
		assert_int_equal(mesh_flag_find(words, size), 0);
		words[line * WORDS_OF_LINE + WORDS_OF_LINE - 1] ^= 1;
	}
	lines_fill(words, LINES, 0);
	assert_int_equal(mesh_flag_find(words, size), 0);
	lines_fill(words, LINES, ((uint64_t)1 << 48) - 1);
	assert_int_equal(mesh_flag_find(words, size), ((uint64_t)1 << 48) - 1);
	lines_fill(words, LINES, 0x3f8000003f800000); /* 1.0 everywhere */
	assert_int_equal(mesh_flag_find(words, size), 0);
}

/* A copy without the flags, and the flags behind it, are the message; at any address. */
TEST(lines_come_and_flags_follow)
{
	static uint64_t words[LINES * WORDS_OF_LINE], unflagged[LINES * WORDS_OF_LINE];
	static char room[sizeof(words) + 16];

	lines_fill(words, LINES, 9);
	mesh_flag_leave_out(unflagged, words, sizeof(words));
	for (size_t line = 0; line < LINES; line++)
		assert_int_equal(unflagged[line * WORDS_OF_LINE + WORDS_OF_LINE - 1], 0);
	for (size_t first = 0; first < 9; first++) {
		memset(room, 0x5a, sizeof(room));
		memcpy(room + first, unflagged, sizeof(unflagged));
		mesh_flag_store(room + first, sizeof(words), 9);
		assert_memory_equal(room + first, words, sizeof(words));
		assert_int_equal(room[first + sizeof(words)], 0x5a);
	}
}
