/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint_addr.h - a NIC of a node and the fabric endpoint on it, as other nodes see them;
 * providers.
 */
#ifndef MESH_NIC_ENDPOINT_ADDR_H
#define MESH_NIC_ENDPOINT_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"

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

/* More mesh NICs than this are not used: the index travels in four bits of the handle. */
#define MESH_NICS_MAX 16

struct mesh_endpoint_addr {
	struct mesh_addr addr; /* scope_id is not carried: it is only valid on its own node */
	uint16_t port;	       /* of the fabric endpoint, host order */
	uint8_t nic;	       /* index among that node's mesh NICs */
	enum mesh_provider_id provider; /* the best one of that NIC */
	bool also_tcp;			/* tcp as well, for NICs that lack the best one */
	bool reserve;			/* used only if no other NICs connect the two nodes */
	int speed_mbps; /* 0 where unknown; the handle has no room for it, HELLO has */
};

#endif
