/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_file.h - where the pages of counters are, how a process creates its own, and how others
 * find them.
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

#include "wire/stats.h"

/* Holds each user's folder, nccl-net-mesh-<uid>: in memory, empty after a reboot. */
#define MESH_STATS_ROOT "/dev/shm"
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

/**
 * Calls @visit with the open folder of each user whose folder this process may enter, or with the
 * one that the setting names; its owner alone can write there.
 *
 * @setting: as above
 * @make: creates this user's own folder, if it is missing
 *
 * Returns how many there were, or a negative errno: -ENOENT if there is none, -EACCES and the like
 * if it cannot be entered. Logs nothing.
 */
int mesh_stats_folders_visit(const char *setting, bool make,
			     void (*visit)(void *arg, const char *path, int folder_fd, uid_t owner),
			     void *arg);

/* A copy of one process's page. */
struct mesh_stats_found {
	char path[PATH_MAX]; /* for messages */
	uint32_t uid;	     /* the user that owns the file */
	int error;	     /* 0, or why the page cannot be used: negative errno */
	struct mesh_stats_page page;
};

/**
 * Reads the pages of living processes, and removes those of dead ones where that is allowed.
 *
 * @setting: as above; "" reads the folders of all users that may be entered
 * @visit: called for each; its arguments are valid during the call
 *
 * Returns the number of pages, those with an error included, or a negative errno: -ENOENT if there
 * is no folder, -EACCES and the like if it cannot be read. Logs nothing.
 */
int mesh_stats_files_read(const char *setting,
			  void (*visit)(void *arg, const struct mesh_stats_found *found),
			  void *arg);

#endif
