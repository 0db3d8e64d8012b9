/* SPDX-License-Identifier: Apache-2.0 */
/* stats_folders.h - the pages of counters of all processes, in the folders of all users. */
#ifndef FI_UTILS_COMMON_STATS_FOLDERS_H
#define FI_UTILS_COMMON_STATS_FOLDERS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/stats.h"

/**
 * Calls @visit with the open folder of each user whose folder this process may enter, or with the
 * one that the setting names; its owner alone can write there.
 *
 * @setting: NCCL_MESH_STATS_DIR: a folder; "": the folders of all users
 * @make: creates this user's own folder, if it is missing
 *
 * Returns how many there were, or a negative errno: -ENOENT if there is none, -EACCES and the like
 * if it cannot be entered. Logs nothing.
 */
int stats_folders_visit(const char *setting, bool make,
			void (*visit)(void *arg, const char *path, int folder_fd, uid_t owner),
			void *arg);

/**
 * Checks a copy of a page: @size untrusted bytes, at any alignment. Unprintable characters of its
 * texts become '?'.
 *
 * @page: undefined on failure; entries beyond those of the file are free
 *
 * Returns 0; -EPROTO if this is not such a page, or a damaged one; -EPROTONOSUPPORT for another
 * version; -EAGAIN if it was copied while its entries changed.
 */
int stats_page_decode(const void *bytes, size_t size, struct mesh_stats_page *page);

/** The addresses of a checked entry. */
void stats_entry_addresses(const struct mesh_stats_entry *entry, struct mesh_addr *local,
			   struct mesh_addr *remote);

/* A copy of one process's page. */
struct stats_found {
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
int stats_files_read(const char *setting, void (*visit)(void *arg, const struct stats_found *found),
		     void *arg);

#endif
