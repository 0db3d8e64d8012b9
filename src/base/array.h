/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays that grow by one. */
#ifndef MESH_BASE_ARRAY_H
#define MESH_BASE_ARRAY_H

#include <stddef.h>

/**
 * Makes room for one element more than the @num elements of @array. The array grows at powers of
 * two, so its capacity need not be stored; it must have grown by this function from the beginning.
 *
 * @array: of realloc(), NULL while @num is 0
 * @size: of one element, in bytes
 *
 * Returns the array, which may have moved; NULL if memory is short, with @array unchanged.
 */
void *mesh_array_room(void *array, size_t num, size_t size);

#endif
