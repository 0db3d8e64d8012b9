/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - what the ranks send and what must arrive. Moved elements name the rank and the
 * position that they came from; summed ones are small whole numbers, so that every order of
 * summing gives the same float.
 */
#ifndef COLLECTIVES_VALUES_H
#define COLLECTIVES_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* What a receive buffer is filled with before a checked run: no value of ours. */
#define VALUES_POISON_BYTE 0xff

enum values_kind {
	VALUES_MOVED,	   /* uint32: rank + 1 (7 bits), position (25 bits) */
	VALUES_SUMMED_INT, /* uint32, sums wrap */
	VALUES_SUMMED_FLOAT,
};

/** Element @position of @rank's data, as its four bytes. */
uint32_t values_sent(enum values_kind kind, int rank, size_t position);

/** The sum of that element over the ranks 0 to @world - 1, as its four bytes. */
uint32_t values_sum(enum values_kind kind, int world, size_t position);

/** Writes @count elements of @rank's data that begin at @first. */
void values_fill(uint32_t *to, enum values_kind kind, int rank, size_t first, size_t count);

/* Where the elements of a stretch of a result come from. */
struct values_origin {
	enum values_kind kind;
	int rank;     /* VALUES_MOVED: whose */
	int world;    /* sums: over how many */
	size_t first; /* position of the first element */
};

/** How many of the @count elements at @found are wrong; *where is the first that is. */
size_t values_wrong(const uint32_t *found, struct values_origin origin, size_t count,
		    size_t *where);

/** Says what @found is instead of the element at @position of @origin. */
void values_explain(uint32_t found, struct values_origin origin, size_t position, char *text,
		    size_t size);

#endif
