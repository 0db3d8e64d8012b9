/* SPDX-License-Identifier: Apache-2.0 */
/* link_address.h - whether the kernel knows the link address of a node (by ARP, or NDP). */
#ifndef MESH_SYSTEM_LINK_ADDRESS_H
#define MESH_SYSTEM_LINK_ADDRESS_H

#include "nic/addr.h"

/**
 * Asks the kernel for the link address to which a packet from @source, an address of the NIC
 * @ifindex, to @destination goes by that NIC: the gateway's if the route has one. If it does not
 * know the address, it is made to ask for it, with an empty datagram to UDP port 9 (discard). Never
 * waits. Logs nothing.
 *
 * Returns 0 if the kernel knows it, or needs none, or cannot tell (no route; Linux before 5.0), or
 * cannot be made to ask (a firewall); -EAGAIN if it does not know it.
 */
int mesh_link_address_find(const struct mesh_addr *source, unsigned int ifindex,
			   const struct mesh_addr *destination);

#endif
