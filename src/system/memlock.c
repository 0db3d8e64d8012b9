/* SPDX-License-Identifier: Apache-2.0 */
/* memlock.c - the limit of locked memory: RDMA needs more than the usual default. */
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/memlock.h"

bool mesh_uid_map_is_first(const char *uid_map)
{
	unsigned long inside, outside, count;

	return sscanf(uid_map, "%10lu %10lu %10lu", &inside, &outside, &count) == 3 && !inside &&
	       !outside && count == UINT32_MAX;
}

static bool in_first_user_namespace(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	char line[128];
	bool first;

	if (!file)
		return true; /* a kernel without user namespaces */
	first = fgets(line, sizeof(line), file) && mesh_uid_map_is_first(line);
	fclose(file);
	return first;
}

static bool has_ipc_lock(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK) &&
	       in_first_user_namespace();
}

bool mesh_memlock_limited(unsigned long *kib)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY || has_ipc_lock())
		return false;
	*kib = (unsigned long)(limit.rlim_cur >> 10);
	return true;
}

const char *mesh_memlock_hint(char *text)
{
	unsigned long kib;

	text[0] = '\0';
	if (mesh_memlock_limited(&kib))
		snprintf(text, MESH_MEMLOCK_HINT_MAX,
			 "; this process may lock only %lu KiB of memory (ulimit -l): set memlock "
			 "to unlimited in /etc/security/limits.conf and log in again, or "
			 "LimitMEMLOCK=infinity for a service, or --ulimit memlock=-1 for docker "
			 "and podman",
			 kib);
	return text;
}
