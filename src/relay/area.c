/* SPDX-License-Identifier: Apache-2.0 */
/* area.c - which granules of a circuit's memory in a relay are in use. */
#include <assert.h>
#include <errno.h>

#include "relay/area.h"

/* @count bits from @first on. */
static uint64_t bits_of(unsigned int first, unsigned int count)
{
	uint64_t bits = count < MESH_GRANULES ? ((uint64_t)1 << count) - 1 : UINT64_MAX;

	return bits << first;
}

int mesh_area_take(struct mesh_area *area, unsigned int count)
{
	unsigned int first;

	for (first = 0; first + count <= MESH_GRANULES; first++) {
		uint64_t bits = bits_of(first, count);

		if (area->used & bits)
			continue;
		area->used |= bits;
		return (int)first;
	}
	return -EAGAIN;
}

void mesh_area_give(struct mesh_area *area, unsigned int first, unsigned int count)
{
	uint64_t bits = bits_of(first, count);

	assert((area->used & bits) == bits);
	area->used &= ~bits;
}
