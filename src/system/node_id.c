/* SPDX-License-Identifier: Apache-2.0 */
/* node_id.c - the identity and the name of this node. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "system/node_id.h"

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
	uint64_t hash = MESH_HASH_START;
	char boot_id[64];
	struct stat ns;
	ssize_t n;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, boot_id, sizeof(boot_id));
		if (n > 0)
			hash = mesh_hash_add(hash, boot_id, (size_t)n);
		close(fd);
	}
	if (!stat("/proc/self/ns/net", &ns))
		hash = mesh_hash_add(hash, &ns.st_ino, sizeof(ns.st_ino));
	return hash;
}
