/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - random bytes, which must be unpredictable, and ids from secrets. */
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

#endif
