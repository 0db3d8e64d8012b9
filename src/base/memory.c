/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - arrays that grow by one, copies of messages, texts of strangers. */
#include <stdlib.h>

#include "base/memory.h"

void *mesh_array_room(void *array, size_t num, size_t size)
{
	if (num & (num - 1)) /* between two powers of two there is room left */
		return array;
	return reallocarray(array, num ? 2 * num : 1, size);
}

void mesh_bytes_copy_pieces(void *to, const void *from, size_t size)
{
	const char *source = from;
	char *target = to;
	size_t piece;

	while (size) {
		piece = size < MESH_BYTES_PIECE ? size : MESH_BYTES_PIECE;
		/* Of a size that it knows the compiler makes `rep movsq`, which is as slow. */
		__asm__("" : "+r"(piece));
		memcpy(target, source, piece);
		target += piece;
		source += piece;
		size -= piece;
	}
}
