/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - the bytes of a message. Word i (8 bytes, little-endian) of a message is
 *
 *   stream (20 bits: sender 6, receiver 6, reply 1, channel 7) | message number (16) | i (28)
 *
 * so a wrong word shows which message, and which part of it, it came from.
 */
#ifndef DRIVER_PATTERN_H
#define DRIVER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the receiver fills a slot with before it posts it, where every byte is checked. */
#define PATTERN_POISON 0xc3
/* Bytes after the posted buffer that are checked as well. */
#define PATTERN_GUARD 64

enum pattern_depth {
	PATTERN_FULL,	 /* every byte */
	PATTERN_SAMPLED, /* the first and last 64 bytes, and one word in every 4 KiB */
};

/** The stream of one comm. @reply: it carries the answers of a pair, not the pair's data. */
uint32_t pattern_stream(unsigned int from, unsigned int to, bool reply, unsigned int channel);

/** Writes message @sequence of @stream to @buffer (any alignment). */
void pattern_fill(void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		  enum pattern_depth depth);

/**
 * Looks for bytes that are not those of pattern_fill().
 *
 * Returns true if all are right; else *offset is the offset of the first wrong word.
 */
bool pattern_check(const void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		   enum pattern_depth depth, size_t *offset);

/** Returns true if @size bytes still are PATTERN_POISON; else *offset is the first that is not. */
bool pattern_untouched(const void *buffer, size_t size, size_t *offset);

/** Describes the bytes at a wrong @offset and their possible origin. */
void pattern_explain(const void *buffer, size_t size, uint32_t stream, uint64_t sequence,
		     size_t offset, char *text, size_t text_size);

#endif
