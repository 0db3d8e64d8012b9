/* SPDX-License-Identifier: Apache-2.0 */
/* enable.h - what `fi_mesh enable` writes, and how: our lines, the file, their values. */
#ifndef MESH_FI_UTILS_ENABLE_ENABLE_H
#define MESH_FI_UTILS_ENABLE_ENABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/nccl_setting.h"
#include "nic/nic.h"

/* ---- our lines ------------------------------------------------------------------------------- */

/*
 * The block is what stands between two marker lines of one of NCCL's configuration files.
 * Everything else is foreign, and every change leaves each byte of it as it was, also a foreign
 * line between the markers. Pure functions on the file's text.
 */

enum conf_value_kind {
	CONF_NEEDED,   /* the block has it; a foreign line with another value is an obstacle */
	CONF_OPTIONAL, /* the block has it unless a foreign line sets another value */
	CONF_WATCHED,  /* the block does not have it; another value is an obstacle nevertheless */
};

/* A line that the block should have, or that no other line may contradict. */
struct conf_value {
	enum conf_value_kind kind;
	const char *name;
	char value[NCCL_CONF_VALUE_MAX + 1];
	bool any_case; /* NCCL ignores the case of this value */
};

/* A file's content; bytes may be anything, zeros and carriage returns included. */
struct conf_text {
	char *bytes; /* owned; a zero stands behind them */
	size_t size; /* bytes */
};

/* Why a text was not changed. */
struct conf_obstacle {
	int line;	 /* from 1 */
	char text[1200]; /* the line, safe to print */
};

/* More than there are in struct conf_value's callers. */
#define CONF_VALUES_MAX 8

/**
 * Makes the text with a block of @values at its end, in place of any older block.
 *
 * @is_new: there is no such file yet; the block notes it, so that its removal removes the file
 * @made: to be freed; set on success only
 *
 * Returns 0; -EEXIST if a foreign line sets one of the names to another value, -EBADMSG if a marker
 * has no counterpart (both with @obstacle); -ENOMEM.
 */
int conf_block_put(const struct conf_text *old, bool is_new, const struct conf_value *values,
		   int num, struct conf_text *made, struct conf_obstacle *obstacle);

/**
 * Makes the text without the block.
 *
 * @unmake: true if nothing is left of a file that conf_block_put() got as new
 *
 * Returns 1; 0 if there is no block, and @made is not set; -EBADMSG; -ENOMEM.
 */
int conf_block_remove(const struct conf_text *old, struct conf_text *made, bool *unmake,
		      struct conf_obstacle *obstacle);

/* ---- reads a configuration file, and replaces it as a whole or not at all -------------------- */

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
 * Returns 0; -ENOENT for a dangling link; -EINVAL if it is not a regular file; -EFBIG;
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

/* ---- what `fi_mesh enable` writes: how NCCL finds the plugin, and where the ranks meet ------- */

/* What the user asked for. */
struct enable_choice {
	bool strict;	    /* NCCL must fail if it cannot take the plugin */
	const char *ifname; /* the NIC for the bootstrap, "none", or NULL: find it */
};

/**
 * True if the loader's cache, as `ldconfig -p` prints it, has the file @path under its own name:
 * NCCL then finds it by name, in every version.
 */
bool enable_cache_has(const char *cache, const char *path);

/**
 * Finds the NIC over which all nodes reach each other: the only one with a default route that does
 * not carry the mesh. NULL if there is none, or more than one.
 */
const char *enable_ifname_find(const struct mesh_nic_table *table);

/**
 * Makes the list of values.
 *
 * @is_rccl: for RCCL's file
 * @who: for messages
 * @values: CONF_VALUES_MAX of them
 *
 * Returns their number, or a negative errno (reported): -ENOENT if no plugin is installed together
 * with this program.
 */
int enable_values_make(const char *who, bool is_rccl, const struct enable_choice *choice,
		       struct conf_value *values);

#endif
