/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - asks the kernel by which interface a packet would leave, and to which node it goes. */
#ifndef MESH_SYSTEM_ROUTE_H
#define MESH_SYSTEM_ROUTE_H

#include <stdbool.h>

#include "nic/addr.h"

/**
 * Asks for the route of a packet from @source (an address of this node) to @destination, as `ip
 * route get DESTINATION from SOURCE` does.
 *
 * @ifindex: the interface by which it would leave
 *
 * Returns 0; -ENETUNREACH and the like if the kernel has no such route; -EIO if it does not
 * answer. Logs nothing.
 */
int mesh_route_find(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int *ifindex);

/* Where a packet goes next. */
struct mesh_kernel_route {
	unsigned int ifindex; /* the interface by which it leaves */
	bool is_local;	      /* it does not leave this node */
	/* The gateway, perhaps of the other family, or the destination; no prefix, no scope. */
	struct mesh_addr hop;
};

/**
 * The same, with the next hop.
 *
 * @ifindex: only routes that leave by this interface; 0: any
 */
int mesh_route_look(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int ifindex, struct mesh_kernel_route *route);

/**
 * True if the kernel's route of a packet from @source, an address of the NIC @ifindex, to
 * @destination leaves by that NIC. Logs nothing.
 */
bool mesh_route_leads(const struct mesh_addr *source, unsigned int ifindex,
		      const struct mesh_addr *destination);

#endif
