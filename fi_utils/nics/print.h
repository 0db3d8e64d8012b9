/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the NIC table as text. */
#ifndef MESH_FI_UTILS_NICS_PRINT_H
#define MESH_FI_UTILS_NICS_PRINT_H

#include <stdio.h>

#include "nic/nic.h"
#include "nics/provider.h"

/**
 * Prints the table as text.
 *
 * @providers: table->num_taken of them
 */
void nics_print(FILE *file, const struct mesh_nic_table *table,
		const struct nics_provider *providers, const char *site);

#endif
