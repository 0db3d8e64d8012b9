/* SPDX-License-Identifier: Apache-2.0 */
/* provider_id.h - the libfabric providers that the mesh supports, as they travel on the wire. */
#ifndef MESH_NIC_PROVIDER_ID_H
#define MESH_NIC_PROVIDER_ID_H

#include <stdbool.h>

/*
 * Two nodes can communicate only with equal ids: libfabric's tcp and tcp;ofi_rxm connect to each
 * other and then hang. Values are part of the wire format; two bits in the handle.
 */
enum mesh_provider_id {
	MESH_PROVIDER_NONE = 0,
	MESH_PROVIDER_VERBS_RXM = 1,
	MESH_PROVIDER_TCP = 2, /* called "net" by libfabric 1.16 and 1.17 */
	MESH_PROVIDER_TCP_RXM = 3,
};

#define MESH_PROVIDER_ID_MAX MESH_PROVIDER_TCP_RXM

/** True if @providers, in which bit N is for id N, have RDMA. */
static inline bool mesh_providers_have_rdma(unsigned int providers)
{
	return providers >> MESH_PROVIDER_VERBS_RXM & 1;
}

/** The name that users know: "verbs;ofi_rxm", "tcp", "tcp;ofi_rxm", or "none". Never NULL. */
const char *mesh_provider_id_text(enum mesh_provider_id id);

/** Reads such a name ("net" means tcp); MESH_PROVIDER_NONE for any other text. */
enum mesh_provider_id mesh_provider_id_parse(const char *text);

/**
 * True for the list "verbs;ofi_rxm,tcp" ("net" means tcp): tcp is allowed also where both ends have
 * RDMA and it does not get through. mesh_provider_id_parse() returns MESH_PROVIDER_NONE for it.
 */
bool mesh_provider_list_falls_back(const char *text);

#endif
