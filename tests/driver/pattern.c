/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - fills, checks and explains message bytes. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"

#define WORD sizeof(uint64_t)
#define EDGE_WORDS 8	 /* at each end, when sampled */
#define STRIDE_WORDS 512 /* between samples: 4 KiB */

struct word_name {
	unsigned int from, to, channel;
	bool reply;
	unsigned int sequence;
	uint64_t offset;
};

uint32_t pattern_stream(unsigned int from, unsigned int to, bool reply, unsigned int channel)
{
	return (from & 63) << 14 | (to & 63) << 8 | (reply ? 1u << 7 : 0) | (channel & 127);
}

/* Word 0 of a message; word i is this plus i. */
static uint64_t first_word(uint32_t stream, uint64_t sequence)
{
	return (uint64_t)stream << 44 | (sequence & 0xffff) << 28;
}

static void put_word(uint8_t *at, uint64_t value, size_t size)
{
	uint64_t little = htole64(value);

	memcpy(at, &little, size);
}

static bool word_is(const uint8_t *at, uint64_t value, size_t size)
{
	uint64_t little = htole64(value);

	return !memcmp(at, &little, size);
}

/* Full words of the message that are looked at, in order: the next one after i. */
static size_t next_word(size_t i, size_t words, enum pattern_depth depth)
{
	size_t tail = words > EDGE_WORDS ? words - EDGE_WORDS : 0, next;

	if (depth == PATTERN_FULL || i + 1 < EDGE_WORDS || i + 1 >= tail)
		return i + 1;
	next = (i / STRIDE_WORDS + 1) * STRIDE_WORDS;
	return next < tail ? next : tail;
}

static void fill_all(uint8_t *at, size_t words, uint64_t first)
{
	for (size_t i = 0; i < words; i++)
		put_word(at + i * WORD, first + i, WORD);
}

void pattern_fill(void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		  enum pattern_depth depth)
{
	uint64_t first = first_word(stream, sequence);
	size_t words = size / WORD;
	uint8_t *at = buffer;

	if (depth == PATTERN_FULL)
		fill_all(at, words, first);
	else
		for (size_t i = 0; i < words; i = next_word(i, words, depth))
			put_word(at + i * WORD, first + i, WORD);
	put_word(at + words * WORD, first + words, size % WORD);
}

/* Sums up differences without a branch for each word, so that the compiler can vectorise it. */
static bool block_is(const uint8_t *at, size_t words, uint64_t first)
{
	uint64_t different = 0, word;

	for (size_t i = 0; i < words; i++) {
		memcpy(&word, at + i * WORD, WORD);
		different |= word ^ htole64(first + i);
	}
	return !different;
}

bool pattern_check(const void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		   enum pattern_depth depth, size_t *offset)
{
	uint64_t first = first_word(stream, sequence);
	size_t words = size / WORD, i;
	const uint8_t *at = buffer;

	if (depth != PATTERN_FULL || !block_is(at, words, first)) {
		for (i = 0; i < words; i = next_word(i, words, depth)) {
			if (!word_is(at + i * WORD, first + i, WORD)) {
				*offset = i * WORD;
				return false;
			}
		}
	}
	if (word_is(at + words * WORD, first + words, size % WORD))
		return true;
	*offset = words * WORD;
	return false;
}

bool pattern_untouched(const void *buffer, size_t size, size_t *offset)
{
	const uint8_t *at = buffer;

	/* All bytes are equal to the one before, and the first one is right. */
	if (!size || (at[0] == PATTERN_POISON && !memcmp(at, at + 1, size - 1)))
		return true;
	for (size_t i = 0; i < size; i++) {
		if (at[i] != PATTERN_POISON) {
			*offset = i;
			return false;
		}
	}
	return true;
}

static struct word_name name_of(uint64_t word)
{
	struct word_name name = {
		.from = (unsigned int)(word >> 58) & 63,
		.to = (unsigned int)(word >> 52) & 63,
		.reply = (word >> 51) & 1,
		.channel = (unsigned int)(word >> 44) & 127,
		.sequence = (unsigned int)(word >> 28) & 0xffff,
		.offset = (word & 0xfffffff) * WORD,
	};

	return name;
}

static void explain_word(uint64_t found, uint64_t expected, char *text, size_t size)
{
	struct word_name f = name_of(found), e = name_of(expected);

	if (f.from == e.from && f.to == e.to && f.reply == e.reply && f.channel == e.channel &&
	    f.sequence == e.sequence)
		snprintf(text, size, "it is from offset %" PRIu64 " of the same message", f.offset);
	else if (f.from == e.from && f.to == e.to && f.reply == e.reply && f.channel == e.channel)
		snprintf(text, size, "it is from offset %" PRIu64 " of message %u of this comm",
			 f.offset, f.sequence);
	else if (f.offset == e.offset && f.sequence == e.sequence)
		snprintf(text, size,
			 "it looks like message %u of another comm (%u -> %u, channel %u%s)",
			 f.sequence, f.from, f.to, f.channel, f.reply ? ", reply" : "");
	else
		snprintf(text, size, "it is no part of a message near this one");
}

/* "byte 3 is 0x41 instead of 0x40": one damaged byte. */
static bool explain_byte(const uint8_t *found, uint64_t expected, size_t size, size_t offset,
			 char *text, size_t text_size)
{
	uint64_t little = htole64(expected);
	const uint8_t *right = (const uint8_t *)&little;
	size_t wrong = 0, at = 0;

	for (size_t i = 0; i < size; i++) {
		if (found[i] != right[i]) {
			wrong++;
			at = i;
		}
	}
	if (wrong != 1)
		return false;
	snprintf(text, text_size, "only the byte at offset %zu is wrong, 0x%02x for 0x%02x",
		 offset + at, found[at], right[at]);
	return true;
}

void pattern_explain(const void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		     size_t offset, char *text, size_t text_size)
{
	uint64_t expected = first_word(stream, sequence) + offset / WORD, found = 0;
	size_t bytes = size - offset < WORD ? size - offset : WORD, untouched;
	const uint8_t *at = (const uint8_t *)buffer + offset;
	char origin[200];

	memcpy(&found, at, bytes);
	found = le64toh(found);
	if (bytes < WORD)
		expected &= (1ull << 8 * bytes) - 1;
	if (pattern_untouched(at, bytes, &untouched))
		snprintf(origin, sizeof(origin), "nothing was written there");
	else if (!explain_byte(at, expected, bytes, offset, origin, sizeof(origin)))
		explain_word(found, expected, origin, sizeof(origin));
	snprintf(text, text_size,
		 "wrong bytes at offset %zu of %zu: 0x%0*" PRIx64 " instead of 0x%0*" PRIx64
		 " (%s)",
		 offset, size, (int)(2 * bytes), found, (int)(2 * bytes), expected, origin);
}
