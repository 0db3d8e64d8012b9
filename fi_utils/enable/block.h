/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - our lines in one of NCCL's configuration files. Pure functions on the file's text.
 *
 * The block is what stands between two marker lines. Everything else is foreign, and every change
 * leaves each byte of it as it was, also a foreign line between the markers.
 */
#ifndef MESH_FI_UTILS_ENABLE_BLOCK_H
#define MESH_FI_UTILS_ENABLE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/nccl_setting.h"

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

#endif
