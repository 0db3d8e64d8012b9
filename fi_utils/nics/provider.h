/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - what libfabric reports for one mesh NIC. */
#ifndef MESH_FI_UTILS_NICS_PROVIDER_H
#define MESH_FI_UTILS_NICS_PROVIDER_H

/* What libfabric reports for one mesh NIC. */
struct nics_provider {
	const char *name; /* "verbs;ofi_rxm"; NULL if it was not asked */
	char *note;	  /* why a better one was skipped, or NULL; owned */
};

#endif
