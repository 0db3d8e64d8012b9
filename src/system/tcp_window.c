/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_window.c - reads the kernel's limits of TCP's buffers. */
#include "system/tcp_window.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

/* The third number of such a file is the largest buffer, in bytes; 0 where it has none. */
static uint64_t limit_read(const char *root, const char *name)
{
	char path[PATH_MAX];
	uint64_t limit = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/sys/net/ipv4/%s", root, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %" SCNu64, &limit) != 1)
		limit = 0;
	fclose(file);
	return limit;
}

uint64_t mesh_tcp_window_bytes(const char *root)
{
	uint64_t sent = limit_read(root, "tcp_wmem"), received = limit_read(root, "tcp_rmem");

	return (sent < received ? sent : received) / 2;
}
