/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - random bytes from the kernel. */
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
