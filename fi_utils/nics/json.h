/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - the NIC table as JSON. */
#ifndef MESH_FI_UTILS_NICS_JSON_H
#define MESH_FI_UTILS_NICS_JSON_H

#include <stdio.h>

#include "nic/nic.h"
#include "nics/provider.h"

/** Prints JSON. Returns 0, or -1 if there was no memory or the file could not be written. */
int nics_print_json(FILE *file, const struct mesh_nic_table *table,
		    const struct nics_provider *providers, const char *site);

#endif
