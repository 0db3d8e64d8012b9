/* SPDX-License-Identifier: Apache-2.0 */
/* nics.h - what `fi_mesh nics` prints, apart from where it comes from. */
#ifndef MESH_FI_UTILS_NICS_H
#define MESH_FI_UTILS_NICS_H

#include <stdio.h>

#include "nic/nic.h"

/* What libfabric says of one mesh NIC. */
struct nics_provider {
	const char *name; /* "verbs;ofi_rxm"; NULL where it was not asked */
	char *note;	  /* why a better one was passed over, or NULL; owned */
};

/**
 * Prints a table for people.
 *
 * @providers: table->num_taken of them
 */
void nics_print(FILE *file, const struct mesh_nic_table *table,
		const struct nics_provider *providers);

/** Prints JSON. Returns 0, or -1 if there was no memory or the file could not be written. */
int nics_print_json(FILE *file, const struct mesh_nic_table *table,
		    const struct nics_provider *providers);

#endif
