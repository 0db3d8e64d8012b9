/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - untrusted texts: from other nodes, and from files that other users write. */
#ifndef MESH_BASE_TEXT_H
#define MESH_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

#endif
