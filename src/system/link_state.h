/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_state.h - whether a NIC has a carrier now, and a socket that becomes readable when a link
 * or an address changes.
 */
#ifndef MESH_SYSTEM_LINK_STATE_H
#define MESH_SYSTEM_LINK_STATE_H

#include <stdbool.h>

#include "nic/nic.h"

/** False only if the kernel says that the NIC is down, has no carrier, or is gone. */
bool mesh_carrier_is_up(const struct mesh_nic *nic);

/**
 * Opens the socket, non-blocking, for the current network namespace; a forked child does not keep
 * it. Close it with mesh_descriptor_close().
 *
 * Returns the descriptor, or a negative errno.
 */
int mesh_netlink_watch_open(void);

/**
 * Reads and drops all pending events. An event only shows that something changed: the state itself
 * comes from mesh_netlink_load(), so an overrun of the socket loses nothing.
 */
void mesh_netlink_watch_drain(int fd);

#endif
