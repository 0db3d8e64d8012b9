/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_addr.h - a NIC of a node and the fabric endpoint on it, as other nodes see them. */
#ifndef MESH_NIC_ENDPOINT_ADDR_H
#define MESH_NIC_ENDPOINT_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "nic/provider_id.h"

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
