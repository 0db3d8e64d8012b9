/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.h - the fuzzer's bytes as a string, and checks of what came out of them. */
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

/** Aborts unless @text ends within @size bytes and can be printed. */
static inline void fuzz_text_printable(const char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		abort();
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			abort();
	}
}

#endif
