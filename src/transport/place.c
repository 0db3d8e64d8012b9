/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - copies a message into a receive buffer that a GPU is already polling. */
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/place.h"

#define WORD_BYTES sizeof(uint64_t)
#define LINE_WORDS (MESH_LINE_BYTES / WORD_BYTES)

/* One whole line. The release keeps the other words before the flag, on arm64 as well. */
static void line_place(uint64_t *to, const char *from)
{
	uint64_t word;
	size_t i;

	for (i = 0; i < LINE_WORDS - 1; i++) {
		memcpy(&word, from + i * WORD_BYTES, sizeof(word));
		__atomic_store_n(to + i, word, __ATOMIC_RELAXED);
	}
	memcpy(&word, from + i * WORD_BYTES, sizeof(word));
	__atomic_store_n(to + i, word, __ATOMIC_RELEASE);
}

/* Less than a line: word by word, each after the one before it; then the odd bytes. */
static void rest_place(uint64_t *to, const char *from, size_t size)
{
	uint64_t word;

	for (; size >= WORD_BYTES; size -= WORD_BYTES, from += WORD_BYTES, to++) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n(to, word, __ATOMIC_RELEASE);
	}
	memcpy(to, from, size);
}

void mesh_place(void *to, const void *from, size_t size)
{
	const char *source = from;
	uint64_t *words = to;

	if ((uintptr_t)to % WORD_BYTES) {
		/* No flag can live here: LL and LL128 buffers are aligned. */
		mesh_bytes_copy(to, from, size);
		return;
	}
	for (; size >= MESH_LINE_BYTES; size -= MESH_LINE_BYTES) {
		line_place(words, source);
		words += LINE_WORDS;
		source += MESH_LINE_BYTES;
	}
	rest_place(words, source, size);
}
