/* SPDX-License-Identifier: Apache-2.0 */
/* node_id.c - the identity and the name of this node. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/node_id.h"

/* FNV-1a, 64 bits (draft-eastlake-fnv). */
#define FNV_START 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * FNV_PRIME;
	return hash;
}

const char *mesh_node_name(const char *setting, char *name, size_t size)
{
	if (*setting)
		snprintf(name, size, "%s", setting);
	else if (gethostname(name, size))
		snprintf(name, size, "(unnamed)");
	name[size - 1] = '\0';
	return name;
}

uint64_t mesh_node_id(void)
{
	uint64_t hash = FNV_START;
	char boot_id[64];
	struct stat ns;
	ssize_t n;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, boot_id, sizeof(boot_id));
		if (n > 0)
			hash = hash_add(hash, boot_id, (size_t)n);
		close(fd);
	}
	if (!stat("/proc/self/ns/net", &ns))
		hash = hash_add(hash, &ns.st_ino, sizeof(ns.st_ino));
	return hash;
}
