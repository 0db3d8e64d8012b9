/* SPDX-License-Identifier: Apache-2.0 */
/*
 * area.h - which granules of a circuit's memory in a relay are in use. The node that writes into
 * the memory keeps this: it needs no message to find room.
 *
 * Each circuit has memory of its own in each relay, so no circuit waits for another, and none for
 * itself: its last relay writes into what the receiver has granted, and of a segment that is cut
 * into pieces only the last one waits, for those that are on their way. Nothing can deadlock, in
 * any graph.
 */
#ifndef MESH_RELAY_AREA_H
#define MESH_RELAY_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "wire/protocol.h"

/* Zeros: nothing is in use. */
struct mesh_area {
	uint64_t used; /* one bit a granule */
};
_Static_assert(MESH_GRANULES == 64, "one bit a granule");

/** Granules for @bytes, at least 1. */
static inline unsigned int mesh_area_granules(size_t bytes, size_t granule)
{
	return bytes ? (unsigned int)((bytes - 1) / granule + 1) : 1;
}

/**
 * Takes @count adjacent granules.
 *
 * Returns the first one, or -EAGAIN if there is no room.
 */
int mesh_area_take(struct mesh_area *area, unsigned int count);

/** Gives them back. */
void mesh_area_give(struct mesh_area *area, unsigned int first, unsigned int count);

#endif
