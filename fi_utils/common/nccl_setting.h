/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_setting.h - NCCL's and RCCL's settings, from the environment and from their files. */
#ifndef MESH_FI_UTILS_COMMON_NCCL_SETTING_H
#define MESH_FI_UTILS_COMMON_NCCL_SETTING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "system/sysfs.h"

/* Longer names and values are cut here by NCCL (setEnvFile() in src/misc/param.cc). */
#define NCCL_CONF_VALUE_MAX 1023
/* Of what the environment may hold; nothing of NCCL's is longer. */
#define NCCL_SETTING_MAX 4096
/* The user's file and the system's. */
#define NCCL_CONF_FILES 2

/* ---- the text of one file ---------------------------------------------------------------- */

/* A line NAME=VALUE. NCCL trims neither: blanks belong to the name, or to the value. */
struct nccl_conf_line {
	const char *name, *value; /* in the text, not ended by a zero */
	size_t name_len, value_len;
	int number; /* of the line, from 1 */
};

/**
 * Finds the next line that sets a variable. Lines that begin with '#' are comments (before NCCL
 * 2.26 they set variables with names that begin with '#').
 *
 * @at: where to look; moves behind the line. @number: 0 at the beginning of the text, updated
 */
bool nccl_conf_next(const char **at, int *number, struct nccl_conf_line *line);

/**
 * Finds the first line that sets @name, which is the one that counts.
 *
 * @value: receives what NCCL takes, at most @size bytes with the zero; untouched unless found
 *
 * Returns the line's number, or 0: there is none, or its value does not fit.
 */
int nccl_conf_find(const char *text, const char *name, char *value, size_t size);

/* ---- all places, in NCCL's order --------------------------------------------------------- */

/* The files of one library. The one that sets a variable first wins, after the environment. */
struct nccl_conf_files {
	char paths[NCCL_CONF_FILES][PATH_MAX];
	int num;
};

/**
 * Lists the files that NCCL reads, in its order: NCCL_CONF_FILE, or .nccl.conf in the user's home
 * folder, and /etc/nccl.conf. RCCL's are called rccl.conf.
 */
void nccl_conf_files_list(bool is_rccl, struct nccl_conf_files *list);

/**
 * Finds the user's file, in the home folder that the user database has, as NCCL does; HOME does
 * not count.
 *
 * @path: PATH_MAX bytes
 *
 * Returns false if the user has no home folder.
 */
bool nccl_conf_home_file(bool is_rccl, char *path);

/** "/etc/nccl.conf" or "/etc/rccl.conf". */
const char *nccl_conf_system_file(bool is_rccl);

/**
 * Reads a file, NULL if it cannot be read or has a zero byte inside. To be freed.
 *
 * @files: opened at "/" or at a recorded tree
 */
char *nccl_conf_read(const struct mesh_sysfs *files, const char *path);

struct nccl_setting {
	char value[NCCL_SETTING_MAX];
	char origin[PATH_MAX]; /* "the environment", "/etc/nccl.conf" */
	int line;	       /* in that file; 0 for the environment */
};

/**
 * Finds the value that NCCL uses.
 *
 * Returns true if it is set, even if to nothing.
 */
bool nccl_setting_find(const struct mesh_sysfs *files, bool is_rccl, const char *name,
		       struct nccl_setting *setting);

#endif
