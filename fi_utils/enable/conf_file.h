/* SPDX-License-Identifier: Apache-2.0 */
/* conf_file.h - reads a configuration file, and replaces it as a whole or not at all. */
#ifndef MESH_FI_UTILS_ENABLE_CONF_FILE_H
#define MESH_FI_UTILS_ENABLE_CONF_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "enable/block.h"

struct conf_file {
	char path[PATH_MAX]; /* of the file itself, behind all symbolic links */
	bool exists;
	struct stat info; /* as it was read; undefined if it does not exist */
	struct conf_text text;
};

/**
 * Reads the file at @path, "" if there is none. Links are followed, so that they stay links.
 *
 * @file: to be freed with conf_file_free() on success
 *
 * Returns 0; -ENOENT for a link that leads nowhere; -EINVAL if it is not a regular file; -EFBIG;
 * another negative errno.
 */
int conf_file_read(const char *path, struct conf_file *file);

/**
 * Replaces the file's content: readers see the old one or the new one. Owner and mode stay; a new
 * file can be read by everybody.
 *
 * Returns 0; -EACCES if the file is read-only for this user; -EBUSY if it has changed since it was
 * read; another negative errno. The file is unchanged then.
 */
int conf_file_replace(const struct conf_file *file, const struct conf_text *text);

/** Removes the file. Returns 0, -EACCES, -EBUSY or another negative errno, as above. */
int conf_file_remove(const struct conf_file *file);

void conf_file_free(struct conf_file *file);

#endif
