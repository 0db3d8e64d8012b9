/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - arrays that grow by one, copies of messages, texts of strangers. */
#ifndef MESH_BASE_MEMORY_H
#define MESH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

/*
 * glibc copies so many bytes with vector instructions, and more with `rep movsb` on x86. On AMD's
 * processors that takes twenty times as long if the target lies 1 to 63 bytes behind the source,
 * whole pages not counted: 2.1 us in place of 0.1 for 4 KiB. A target behind a header, or from
 * malloc(), and a source at the beginning of a page are such a pair.
 */
#define MESH_BYTES_PIECE 2048

/** As mesh_bytes_copy(), piece by piece. */
void mesh_bytes_copy_pieces(void *to, const void *from, size_t size);

/** As memcpy(), for messages of some KiB. */
static inline void mesh_bytes_copy(void *to, const void *from, size_t size)
{
	if (size <= MESH_BYTES_PIECE)
		memcpy(to, from, size);
	else
		mesh_bytes_copy_pieces(to, from, size);
}

/** True if there is a zero byte within @size bytes. */
static inline bool mesh_text_ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/**
 * Replaces every byte that is not printable ASCII by '?'. The result is safe in a log, on root's
 * terminal (no line ends, no escapes) and in JSON (always valid).
 */
static inline void mesh_text_clean(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

/** Checks and cleans a stranger's text. Returns false if it does not end within @size bytes. */
static inline bool mesh_text_accept(char *text, size_t size)
{
	if (!mesh_text_ends(text, size))
		return false;
	mesh_text_clean(text);
	return true;
}

#endif
