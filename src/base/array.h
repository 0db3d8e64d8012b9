/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays that grow by one. */
#ifndef MESH_BASE_ARRAY_H
#define MESH_BASE_ARRAY_H

#include <stddef.h>

/**
 * Makes room behind the @num elements of @array for one more. The array grows at powers of two, so
 * it needs no note of its capacity; it must have grown by this from the beginning.
 *
 * @array: of realloc(), NULL while @num is 0
 * @size: of one element, in bytes
 *
 * Returns the array, which may have moved; NULL without memory: @array is as it was.
 */
void *mesh_array_room(void *array, size_t num, size_t size);

#endif
