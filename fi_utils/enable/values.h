/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - what `fi_mesh enable` writes: how NCCL finds the plugin, and where the ranks meet. */
#ifndef MESH_FI_UTILS_ENABLE_VALUES_H
#define MESH_FI_UTILS_ENABLE_VALUES_H

#include <stdbool.h>

#include "enable/block.h"
#include "nic/nic.h"

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
