/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - patterns that show where a wrong element came from. */
#include <stdio.h>
#include <string.h>

#include "values.h"

#define POSITION_BITS 25
#define POSITION_MASK ((1u << POSITION_BITS) - 1)
#define POISON 0xffffffffu
/* Sums stay below 2^24, where floats are exact, for up to 16000 ranks. */
#define FLOAT_RANGE 1021

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint32_t small_number(int rank, size_t position)
{
	return (uint32_t)((position * 31 + (size_t)rank * 7) % FLOAT_RANGE);
}

uint32_t values_sent(enum values_kind kind, int rank, size_t position)
{
	switch (kind) {
	case VALUES_MOVED:
		return ((uint32_t)(rank + 1) << POSITION_BITS) |
		       ((uint32_t)position & POSITION_MASK);
	case VALUES_SUMMED_INT:
		return ((uint32_t)rank + 1) * 0x9e3779b1u + (uint32_t)position * 2654435761u;
	default:
		return bits_of((float)small_number(rank, position));
	}
}

uint32_t values_sum(enum values_kind kind, int world, size_t position)
{
	uint32_t sum = 0;

	for (int rank = 0; rank < world; rank++)
		sum += kind == VALUES_SUMMED_FLOAT ? small_number(rank, position)
						   : values_sent(kind, rank, position);
	return kind == VALUES_SUMMED_FLOAT ? bits_of((float)sum) : sum;
}

void values_fill(uint32_t *to, enum values_kind kind, int rank, size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = values_sent(kind, rank, first + i);
}

static uint32_t expected(struct values_origin origin, size_t position)
{
	if (origin.kind == VALUES_MOVED)
		return values_sent(VALUES_MOVED, origin.rank, position);
	return values_sum(origin.kind, origin.world, position);
}

size_t values_wrong(const uint32_t *found, struct values_origin origin, size_t count, size_t *where)
{
	size_t i, wrong = 0;

	for (i = 0; i < count; i++) {
		if (found[i] == expected(origin, origin.first + i))
			continue;
		if (!wrong)
			*where = i;
		wrong++;
	}
	return wrong;
}

void values_explain(uint32_t found, struct values_origin origin, size_t position, char *text,
		    size_t size)
{
	uint32_t want = expected(origin, position);
	float have, wanted;

	memcpy(&have, &found, sizeof(have));
	memcpy(&wanted, &want, sizeof(wanted));
	if (found == POISON)
		snprintf(text, size, "was never written");
	else if (origin.kind == VALUES_MOVED)
		snprintf(text, size, "is rank %d's element %u, not rank %d's element %u",
			 (int)(found >> POSITION_BITS) - 1, found & POSITION_MASK, origin.rank,
			 want & POSITION_MASK);
	else if (origin.kind == VALUES_SUMMED_FLOAT)
		snprintf(text, size, "is %.9g, not %.9g", (double)have, (double)wanted);
	else
		snprintf(text, size, "is 0x%08x, not 0x%08x", found, want);
}
