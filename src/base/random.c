/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - random bytes, which must be unpredictable, and ids from secrets. */
#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/random.h"

int mesh_random(void *bytes, size_t size)
{
	ssize_t n;

	/* getrandom(2): up to 256 bytes are never cut short by a signal once the pool is ready. */
	do {
		n = getrandom(bytes, size, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

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

uint64_t mesh_process_id_of(uint64_t cookie)
{
	return mesh_one_way((const uint64_t[2]){cookie, 0});
}
