/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.h - the fuzzer's bytes, as a string or not, and checks of what came out of them. */
#ifndef MESH_TESTS_FUZZ_TEXT_H
#define MESH_TESTS_FUZZ_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Ends the fuzzer, which keeps the input, unless it holds. */
static inline void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

/** A copy that is exactly as long as the text, so that ASan sees each byte too many; or NULL. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return NULL;
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/**
 * Gives the input to @decode, and once more with what @right writes into its @least bytes or more:
 * the constant parts, which a fuzzer seldom guesses. The memory is exactly as large, and aligned.
 */
static inline void fuzz_twice(const uint8_t *data, size_t size, size_t least,
			      void (*right)(uint8_t *bytes, size_t size),
			      void (*decode)(const uint8_t *bytes, size_t size))
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		return;
	memcpy(exact, data, size);
	decode(exact, size);
	if (size >= least) {
		right(exact, size);
		decode(exact, size);
	}
	free(exact);
}

/** Aborts unless @text ends within @size bytes and can be printed. */
static inline void fuzz_text_printable(const char *text, size_t size)
{
	fuzz_check(memchr(text, '\0', size));
	for (; *text; text++)
		fuzz_check(*text >= ' ' && *text <= '~');
}

#endif
