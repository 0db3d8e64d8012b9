/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - FNV-1a (RFC 9923): detects damaged bytes and distinguishes; it does not authenticate. */
#ifndef MESH_BASE_HASH_H
#define MESH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of 64 bits and no bytes. */
#define MESH_HASH_START 0xcbf29ce484222325u

/** Adds @size bytes to a hash of 64 bits. */
static inline uint64_t mesh_hash_add(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}

/** The hash of 32 bits of @size bytes. */
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
