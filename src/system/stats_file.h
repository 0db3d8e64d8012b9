/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_file.h - where the pages of counters are, how a process creates its own, and the marks of
 * drain.
 *
 * A file is called <pid>-<16 hex digits>.mesh and lies in a folder that only its user can enter.
 * Its process holds a lock on it (flock) for as long as it lives, and the kernel releases the lock
 * however the process ends. So a file that can be locked belongs to a dead process. This holds in
 * containers, too, where process ids are not unique.
 */
#ifndef MESH_SYSTEM_STATS_FILE_H
#define MESH_SYSTEM_STATS_FILE_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/stats.h"

/* Holds each user's folder, nccl-net-mesh-<uid>: in memory, empty after a reboot. */
#define MESH_STATS_ROOT "/dev/shm"
#define MESH_STATS_PREFIX "nccl-net-mesh-"
/* NCCL_MESH_STATS_DIR's value for no page at all. */
#define MESH_STATS_NONE "none"

/* The page of this process. */
struct mesh_stats_file {
	struct mesh_stats_page *page; /* mapped, shared; NULL if there is none */
	int fd;			      /* holds the lock */
	int folder_fd;
	char name[64]; /* in the folder */
};

/**
 * Creates this process's file and maps it, after removing those of dead processes. A missing folder
 * is created with mode 0700; a folder that belongs to another user, or that others can enter, is
 * refused.
 *
 * @setting: NCCL_MESH_STATS_DIR: a folder, "" for the user's folder in MESH_STATS_ROOT, or "none"
 * @node_id, @node: as they go into the page
 *
 * Returns 0, also for "none" (no page then); a negative errno after an INFO line. @file can be
 * closed in all cases.
 */
int mesh_stats_file_open(const char *setting, uint64_t node_id, const char *node,
			 struct mesh_stats_file *file);

/** Unmaps the page and removes the file. */
void mesh_stats_file_close(struct mesh_stats_file *file);

/** Writes the path of that user's folder in MESH_STATS_ROOT, PATH_MAX bytes. */
void mesh_stats_folder_of(uid_t uid, char *path);

/**
 * Opens a folder that only @owner can write to: it follows no symbolic link, and refuses a folder
 * that another user created. Returns its descriptor or a negative errno.
 */
int mesh_stats_folder_open(const char *path, uid_t owner);

/**
 * Creates this user's own folder, if need be, opens it, and writes its path of PATH_MAX bytes.
 * Returns its descriptor or a negative errno. @setting: as above
 */
int mesh_stats_folder_make(const char *setting, char *path);

/**
 * Calls @visit with each living process's open file in such a folder, and removes the files of dead
 * processes where that is allowed. @visit: may be NULL
 *
 * Returns how many living ones there are, or a negative errno.
 */
int mesh_stats_folder_walk(int folder_fd, uid_t owner,
			   void (*visit)(void *arg, const char *name, int fd), void *arg);

/*
 * ---- drain marks: which NICs a user has taken out of use: `fi_mesh drain` and `undrain`
 *
 * A mark is an empty file drain-<netdev> in the folder of the counters, where only its user and
 * root can write. It stays until it is removed, or until the next boot.
 */

/* The marked NICs. More than these are not read. */
#define MESH_DRAIN_MARKS_MAX 32

struct mesh_drain_marks {
	char netdevs[MESH_DRAIN_MARKS_MAX][IF_NAMESIZE];
	int num;
};

/** True if the NIC is marked. */
bool mesh_drain_marks_have(const struct mesh_drain_marks *marks, const char *netdev);

/** True if this may be the name of a NIC: it fits, and it is no path. */
bool mesh_drain_netdev_is_valid(const char *netdev);

/**
 * Reads the marks of an open folder. Returns 0, or a negative errno, and then @marks is unchanged.
 */
int mesh_drain_marks_read(int folder_fd, struct mesh_drain_marks *marks);

/** Makes or removes the mark of a NIC in an open folder. Returns 0 or a negative errno. */
int mesh_drain_mark_set(int folder_fd, const char *netdev, bool marked);

/**
 * Opens a descriptor that becomes readable when a mark in a folder is made or removed that
 * mesh_drain_watch_add() has added; mesh_drain_watch_clear() reads what it has. Both return 0 or
 * more, or a negative errno.
 */
int mesh_drain_watch_open(void);
int mesh_drain_watch_add(int fd, int folder_fd);
void mesh_drain_watch_clear(int fd);

#endif
