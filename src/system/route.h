/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - asks the kernel by which interface a packet would leave. */
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

/**
 * True if the kernel's route of a packet from @source, an address of the NIC @ifindex, to
 * @destination leaves by that NIC. Logs nothing.
 */
bool mesh_route_leads(const struct mesh_addr *source, unsigned int ifindex,
		      const struct mesh_addr *destination);

#endif
