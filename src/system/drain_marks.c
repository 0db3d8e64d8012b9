/* SPDX-License-Identifier: Apache-2.0 */
/* drain_marks.c - which NICs a user has taken out of use. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "system/drain_marks.h"

#define MARK_PREFIX "drain-"
/* Bytes: some events, each with a name. */
#define EVENTS_BYTES 4096

bool mesh_drain_marks_have(const struct mesh_drain_marks *marks, const char *netdev)
{
	int i;

	for (i = 0; i < marks->num; i++) {
		if (!strcmp(marks->netdevs[i], netdev))
			return true;
	}
	return false;
}

bool mesh_drain_netdev_is_valid(const char *netdev)
{
	return *netdev && strlen(netdev) < IF_NAMESIZE && !strchr(netdev, '/') &&
	       strcmp(netdev, ".") && strcmp(netdev, "..");
}

int mesh_drain_marks_read(int folder_fd, struct mesh_drain_marks *marks)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	const char *netdev;
	int ret = -errno;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return ret;
	}
	marks->num = 0;
	while (marks->num < MESH_DRAIN_MARKS_MAX && (entry = readdir(folder))) {
		netdev = entry->d_name + strlen(MARK_PREFIX);
		if (strncmp(entry->d_name, MARK_PREFIX, strlen(MARK_PREFIX)) ||
		    !mesh_drain_netdev_is_valid(netdev))
			continue;
		snprintf(marks->netdevs[marks->num++], IF_NAMESIZE, "%s", netdev);
	}
	closedir(folder);
	return 0;
}

int mesh_drain_mark_set(int folder_fd, const char *netdev, bool marked)
{
	char name[sizeof(MARK_PREFIX) + IF_NAMESIZE];
	int fd;

	if (!mesh_drain_netdev_is_valid(netdev))
		return -EINVAL;
	snprintf(name, sizeof(name), MARK_PREFIX "%s", netdev);
	if (!marked)
		return unlinkat(folder_fd, name, 0) && errno != ENOENT ? -errno : 0;
	/* O_EXCL: whatever the folder's user has put there by that name is not opened. */
	fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	close(fd);
	return 0;
}

int mesh_drain_watch_open(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return -errno;
	fd = mesh_descriptor_hide(fd);
	return fd < 0 ? -ENOMEM : fd;
}

int mesh_drain_watch_add(int fd, int folder_fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

	/* The kernel finds the folder by this name, wherever it is now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", folder_fd);
	return inotify_add_watch(fd, path, IN_CREATE | IN_DELETE | IN_MOVE) < 0 ? -errno : 0;
}

void mesh_drain_watch_clear(int fd)
{
	char events[EVENTS_BYTES];

	/* What has changed is read from the folder. */
	while (read(fd, events, sizeof(events)) > 0)
		continue;
}
