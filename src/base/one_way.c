/* SPDX-License-Identifier: Apache-2.0 */
/* one_way.c - SipHash-2-4 (Aumasson and Bernstein, 2012), as far as one_way.h needs it. */
#include "base/one_way.h"

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void rounds(uint64_t v[4], int num)
{
	while (num--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t mesh_one_way(const uint64_t secret[2])
{
	uint64_t v[4] = {
		secret[0] ^ 0x736f6d6570736575u,
		secret[1] ^ 0x646f72616e646f6du,
		secret[0] ^ 0x6c7967656e657261u,
		secret[1] ^ 0x7465646279746573u,
	};

	rounds(v, 2); /* the only block: a length of 0 */
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
