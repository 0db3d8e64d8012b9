/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_watch.h - a socket that becomes readable when a link or an address changes. */
#ifndef MESH_SYSTEM_NETLINK_WATCH_H
#define MESH_SYSTEM_NETLINK_WATCH_H

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
