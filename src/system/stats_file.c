/* SPDX-License-Identifier: Apache-2.0 */
/* stats_file.c - folders of pages of counters, this process's page, and the marks of drain. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/random.h"
#include "system/stats_file.h"

/* Files read from one folder: a bound, not an expectation. */
#define FILES_MAX 4096

/* ---- folders ----------------------------------------------------------------------------- */

void mesh_stats_folder_of(uid_t uid, char *path)
{
	snprintf(path, PATH_MAX, "%s/" MESH_STATS_PREFIX "%lu", MESH_STATS_ROOT,
		 (unsigned long)uid);
}

int mesh_stats_folder_open(const char *path, uid_t owner)
{
	struct stat stat;
	int fd;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &stat) && stat.st_uid == owner && !(stat.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return -EPERM;
}

int mesh_stats_folder_make(const char *setting, char *path)
{
	if (*setting)
		snprintf(path, PATH_MAX, "%s", setting);
	else
		mesh_stats_folder_of(geteuid(), path);
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return mesh_stats_folder_open(path, geteuid());
}

/* ---- files of dead processes --------------------------------------------------------------- */

static bool name_is_ours(const char *name)
{
	unsigned int pid;
	uint64_t id;
	int end = 0;

	return sscanf(name, "%9u-%16" SCNx64 ".mesh%n", &pid, &id, &end) == 2 && end && !name[end];
}

/* Opens a living process's file, and removes a dead one's. Returns a negative errno if none. */
static int file_open_living(int folder_fd, const char *name, uid_t owner)
{
	struct stat stat;
	int fd;

	fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_uid != owner) {
		close(fd);
		return -EPERM;
	}
	/* The process holds the lock. Without it the file goes while we hold it. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return fd;
	unlinkat(folder_fd, name, 0);
	close(fd);
	return -ESRCH;
}

/* To read it, from its begin on. Returns NULL with errno. */
static DIR *folder_list(int folder_fd)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !folder)
		close(fd);
	return folder;
}

int mesh_stats_folder_walk(int folder_fd, uid_t owner,
			   void (*visit)(void *arg, const char *name, int fd), void *arg)
{
	DIR *folder = folder_list(folder_fd);
	const struct dirent *entry;
	int count = 0, fd;

	if (!folder)
		return -errno;
	while (count < FILES_MAX && (entry = readdir(folder))) {
		if (!name_is_ours(entry->d_name))
			continue;
		fd = file_open_living(folder_fd, entry->d_name, owner);
		if (fd < 0)
			continue;
		if (visit)
			visit(arg, entry->d_name, fd);
		count++;
		close(fd);
	}
	closedir(folder);
	return count;
}

/* ---- the page of this process ---------------------------------------------------------------- */

/* A file beyond this limit raises SIGXFSZ, which ends a process that does not handle it. */
static bool size_is_allowed(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= sizeof(struct mesh_stats_page);
}

/*
 * Opens the file a second time, by @path, for the mapping: a mapping keeps its open file, and with
 * it the lock, and a forked child keeps the mapping.
 */
static int page_map(struct mesh_stats_file *file, const char *path)
{
	void *page;
	int ret, fd;

	if (!size_is_allowed())
		return -EFBIG;
	/* Allocate all of it now: otherwise a full file system raises SIGBUS during the run. */
	ret = posix_fallocate(file->fd, 0, sizeof(*file->page));
	if (ret)
		return -ret;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	page = mmap(NULL, sizeof(*file->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ret = -errno;
	close(fd);
	if (page == MAP_FAILED)
		return ret;
	file->page = page;
	return 0;
}

/* The file has no name, and nobody sees it, before it is locked and filled in. */
static int file_make(struct mesh_stats_file *file, uint64_t node_id, const char *node)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	uint64_t id;
	int ret;

	ret = mesh_random(&id, sizeof(id));
	if (ret)
		return ret;
	snprintf(file->name, sizeof(file->name), "%d-%016" PRIx64 ".mesh", (int)getpid(), id);
	/* A forked child would keep the lock after this process has ended. */
	file->fd = mesh_descriptor_hide(
		openat(file->folder_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
	if (file->fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	ret = flock(file->fd, LOCK_EX | LOCK_NB) ? -errno : page_map(file, path);
	if (ret)
		return ret;
	mesh_stats_init(file->page, node_id, (uint32_t)getpid(), node,
			program_invocation_short_name, mesh_clock_wall_ms());
	return linkat(AT_FDCWD, path, file->folder_fd, file->name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static const char *error_hint(int error)
{
	if (error == -EPERM)
		return "; it must belong to this user, and other users must not have write access";
	if (error == -EFBIG)
		return "; this process may not write files of that size (ulimit -f)";
	return "; NCCL_MESH_STATS_DIR selects another folder";
}

int mesh_stats_file_open(const char *setting, uint64_t node_id, const char *node,
			 struct mesh_stats_file *file)
{
	char path[PATH_MAX];
	int ret;

	*file = (struct mesh_stats_file){.fd = -1, .folder_fd = -1};
	if (!strcmp(setting, MESH_STATS_NONE))
		return 0;
	ret = mesh_stats_folder_make(setting, path);
	if (ret >= 0) {
		file->folder_fd = ret;
		mesh_stats_folder_walk(file->folder_fd, geteuid(), NULL, NULL);
		ret = file_make(file, node_id, node);
	}
	if (ret) {
		mesh_info("no counters for `fi_mesh watch`: cannot use the folder %s: %s%s", path,
			  strerror(-ret), error_hint(ret));
		mesh_stats_file_close(file);
	}
	return ret;
}

void mesh_stats_file_close(struct mesh_stats_file *file)
{
	if (file->page) {
		munmap(file->page, sizeof(*file->page));
		unlinkat(file->folder_fd, file->name, 0);
	}
	mesh_descriptor_close(file->fd);
	if (file->folder_fd >= 0)
		close(file->folder_fd);
	*file = (struct mesh_stats_file){.fd = -1, .folder_fd = -1};
}

/* ---- drain marks -------------------------------------------------------------------------- */

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
	DIR *folder = folder_list(folder_fd);
	const struct dirent *entry;
	const char *netdev;

	if (!folder)
		return -errno;
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
