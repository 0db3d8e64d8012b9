/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the NIC table as text and JSON. */
#ifndef MESH_FI_UTILS_NICS_PRINT_H
#define MESH_FI_UTILS_NICS_PRINT_H

#include <stdio.h>

#include "nic/nic.h"

/* What libfabric reports for one mesh NIC. */
struct nics_provider {
	const char *name; /* "verbs;ofi_rxm"; NULL if it was not asked */
	char *note;	  /* why a better one was skipped, or NULL; owned */
};

/**
 * Prints the table as text.
 *
 * @providers: table->num_taken of them
 */
void nics_print(FILE *file, const struct mesh_nic_table *table,
		const struct nics_provider *providers, const char *site);

/** Prints JSON. Returns 0, or -1 if there was no memory or the file could not be written. */
int nics_print_json(FILE *file, const struct mesh_nic_table *table,
		    const struct nics_provider *providers, const char *site);

#endif
