/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - arrays that grow by one. */
#include <stdlib.h>

#include "base/array.h"

void *mesh_array_room(void *array, size_t num, size_t size)
{
	if (num & (num - 1)) /* between two powers of two there is room left */
		return array;
	return reallocarray(array, num ? 2 * num : 1, size);
}
