/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - random bytes, which must be unpredictable, ids from secrets, and checksums. */
#ifndef MESH_BASE_RANDOM_H
#define MESH_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/** Fills @size bytes (at most 256). Returns 0, or a negative errno if the kernel supplies none. */
int mesh_random(void *bytes, size_t size);

/**
 * Returns the id that belongs to @secret: SipHash-2-4 of nothing, with the secret as the key. To
 * find a secret for an id takes some 2^64 attempts.
 */
uint64_t mesh_one_way(const uint64_t secret[2]);

/** The id, which anybody may know, of the process with @cookie, which those with a handle know. */
uint64_t mesh_process_id_of(uint64_t cookie);

/* FNV-1a (RFC 9923): detects damaged bytes and distinguishes; it does not authenticate. */

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
