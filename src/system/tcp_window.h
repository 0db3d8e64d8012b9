/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_window.h - how much a TCP connection of this node may have under way. */
#ifndef MESH_SYSTEM_TCP_WINDOW_H
#define MESH_SYSTEM_TCP_WINDOW_H

#include <stdint.h>

/**
 * Bytes of data that one TCP connection has in flight at most, as the kernel's limits allow: half
 * of the smaller one of its two buffers (tcp_wmem, tcp_rmem), because the kernel counts what its
 * structures take as well. The peer is assumed to have the same limits.
 *
 * @root: of the file system, "" for the machine's own
 *
 * Returns 0 if the kernel does not say.
 */
uint64_t mesh_tcp_window_bytes(const char *root);

#endif
