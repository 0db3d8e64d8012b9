/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_file.h - where the pages of counters are, and how a process creates its own.
 *
 * A file is called <pid>-<16 hex digits>.mesh and lies in a folder that only its user can enter.
 * Its process holds a lock on it (flock) for as long as it lives, and the kernel releases the lock
 * however the process ends. So a file that can be locked belongs to a dead process. This holds in
 * containers, too, where process ids are not unique.
 */
#ifndef MESH_SYSTEM_STATS_FILE_H
#define MESH_SYSTEM_STATS_FILE_H

#include <limits.h>
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
 * Returns how many were visited, or a negative errno.
 */
int mesh_stats_folder_walk(int folder_fd, uid_t owner,
			   void (*visit)(void *arg, const char *name, int fd), void *arg);

#endif
