/* SPDX-License-Identifier: Apache-2.0 */
/* one_way.h - an id from a secret: who knows the secret proves that the id is its own. */
#ifndef MESH_BASE_ONE_WAY_H
#define MESH_BASE_ONE_WAY_H

#include <stdint.h>

/**
 * Returns the id that belongs to @secret: SipHash-2-4 of nothing, with the secret as the key. To
 * find a secret for an id takes some 2^64 attempts.
 */
uint64_t mesh_one_way(const uint64_t secret[2]);

#endif
