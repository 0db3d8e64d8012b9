/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - cookies, tokens and ids that nobody can guess. */
#ifndef MESH_BASE_RANDOM_H
#define MESH_BASE_RANDOM_H

#include <stddef.h>

/** Fills @size bytes (at most 256). Returns 0, or a negative errno if the kernel has none. */
int mesh_random(void *bytes, size_t size);

#endif
