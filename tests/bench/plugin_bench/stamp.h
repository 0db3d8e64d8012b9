/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.h - the bytes of messages, and their check: all of them, or a word in each page. */
#ifndef BENCH_STAMP_H
#define BENCH_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STAMP_ALL sizeof(uint64_t)
/* In the measured part: a word in each page, the first and the last. */
#define STAMP_PAGES 4096

static inline uint64_t stamp_word(uint64_t message, size_t at)
{
	return (message + 1) * 0x9e3779b97f4a7c15u ^ (at + 1) * 0xd1b54a32d192ed03u;
}

static inline void stamp_put(uint8_t *data, size_t size, uint64_t message, size_t step)
{
	uint64_t word;
	size_t at;

	for (at = 0; at + sizeof(word) <= size; at += step) {
		word = stamp_word(message, at);
		memcpy(data + at, &word, sizeof(word));
	}
	at = size < sizeof(word) ? 0 : size - sizeof(word);
	word = stamp_word(message, at);
	memcpy(data + at, &word, size - at);
}

/* The last word may cover a part of the one before, which is then right up to it. */
static inline bool stamp_is_right(const uint8_t *data, size_t size, uint64_t message, size_t step)
{
	size_t last = size < sizeof(uint64_t) ? 0 : size - sizeof(uint64_t), at, part;
	uint64_t word;

	for (at = 0; at < last; at += step) {
		part = last - at < sizeof(word) ? last - at : sizeof(word);
		word = stamp_word(message, at);
		if (memcmp(data + at, &word, part))
			return false;
	}
	word = stamp_word(message, last);
	return !memcmp(data + last, &word, size - last);
}

#endif
