/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.c - puts the test program into an empty network namespace of its own. */
#define _GNU_SOURCE /* unshare */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "namespace.h"

/* Makes us root of a new user namespace, which `ip` needs to be. */
static bool user_namespace_enter(void)
{
	unsigned int uid = (unsigned int)geteuid();
	FILE *file;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS))
		return false;
	file = fopen("/proc/self/uid_map", "w");
	return file && fprintf(file, "0 %u 1\n", uid) > 0 && !fclose(file);
}

bool namespace_enter(void)
{
	if (system("ip -V >/dev/null 2>&1")) {
		fprintf(stderr, "the program ip (iproute2) is not installed\n");
		return false;
	}
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) && !user_namespace_enter()) {
		fprintf(stderr, "network namespaces are not permitted: %s\n", strerror(errno));
		return false;
	}
	return true;
}

void namespace_ip(const char *format, ...)
{
	char command[512] = "ip ";
	va_list args;

	va_start(args, format);
	vsnprintf(command + 3, sizeof(command) - 3, format, args);
	va_end(args);
	if (system(command)) {
		fprintf(stderr, "failed: %s\n", command);
		exit(1);
	}
}

void namespace_nics(int count)
{
	for (int i = 0; i < count; i++) {
		namespace_ip("link add n%d type veth peer name x%d", i, i);
		namespace_ip("link set n%d addrgenmode none up", i);
		namespace_ip("link set x%d addrgenmode none up", i);
		namespace_ip("addr add 10.%d.0.1/24 dev n%d", i + 1, i);
	}
}

bool namespace_mount_sysfs(const char *path)
{
	/* Nothing that we mount may be seen outside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", path, "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
		fprintf(stderr, "cannot mount sysfs: %s\n", strerror(errno));
		return false;
	}
	return true;
}

void namespace_unmount_sysfs(const char *path)
{
	umount2(path, MNT_DETACH);
}
