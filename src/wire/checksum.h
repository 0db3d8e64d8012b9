/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.h - a 32-bit checksum that detects damaged bytes; it does not authenticate. */
#ifndef MESH_WIRE_CHECKSUM_H
#define MESH_WIRE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/** FNV-1a, 32 bits (draft-eastlake-fnv), of @size bytes. */
static inline uint32_t mesh_checksum(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	uint32_t hash = 0x811c9dc5u;
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 0x01000193u;
	return hash;
}

#endif
