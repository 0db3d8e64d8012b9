/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - random bytes for cookies, tokens and ids, which must be unpredictable. */
#ifndef MESH_BASE_RANDOM_H
#define MESH_BASE_RANDOM_H

#include <stddef.h>

/** Fills @size bytes (at most 256). Returns 0, or a negative errno if the kernel supplies none. */
int mesh_random(void *bytes, size_t size);

#endif
