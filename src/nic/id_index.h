/* SPDX-License-Identifier: Apache-2.0 */
/* id_index.h - finds the place of a node id in an array of up to 1024 elements. */
#ifndef MESH_NIC_ID_INDEX_H
#define MESH_NIC_ID_INDEX_H

#include <stdint.h>

#define MESH_ID_INDEX_MAX 1024
#define MESH_ID_INDEX_PLACES (2 * MESH_ID_INDEX_MAX)

/* Zeros: empty. */
struct mesh_id_index {
	uint64_t ids[MESH_ID_INDEX_PLACES];
	uint16_t elements[MESH_ID_INDEX_PLACES]; /* element + 1, or 0 */
};

/* The place of this id, or the free one where it belongs: there are more places than elements. */
static inline int mesh_id_index_place(const struct mesh_id_index *index, uint64_t id)
{
	int place = (int)((id * 0x9e3779b97f4a7c15u >> 40) % MESH_ID_INDEX_PLACES);

	while (index->elements[place] && index->ids[place] != id)
		place = (place + 1) % MESH_ID_INDEX_PLACES;
	return place;
}

/** The element of this id, or -1. */
static inline int mesh_id_index_find(const struct mesh_id_index *index, uint64_t id)
{
	return (int)index->elements[mesh_id_index_place(index, id)] - 1;
}

/** Enters an id that is not there yet. @element: 0 to MESH_ID_INDEX_MAX - 1 */
static inline void mesh_id_index_add(struct mesh_id_index *index, uint64_t id, int element)
{
	int place = mesh_id_index_place(index, id);

	index->ids[place] = id;
	index->elements[place] = (uint16_t)(element + 1);
}

#endif
