/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - the sockets of control connections: from our NIC, kept alive by the kernel. */
#ifndef MESH_CONTROL_SOCKET_H
#define MESH_CONTROL_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

/**
 * Starts to connect a socket that is bound to our NIC's address. The kernel ends it if the peer is
 * silent for @timeout_s seconds.
 *
 * Returns the descriptor, or a negative errno.
 */
int mesh_control_socket_connect(const struct mesh_addr *from_addr, struct mesh_addr to_addr,
				uint16_t to_port, uint64_t timeout_s);

/** Makes the kernel detect a silent peer within @timeout_s seconds, even if nothing is sent. */
void mesh_control_keepalive_set(int fd, uint64_t timeout_s);

/** Ends the connection with a reset, and drops what was not sent. The caller still owns @fd. */
void mesh_control_socket_reset(int fd);

/** Writes what the error of a control connection means into @reason, @size bytes. */
void mesh_control_errno_explain(int error, char *reason, size_t size);

#endif
