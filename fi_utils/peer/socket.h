/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - TCP sockets that connect and listen. */
#ifndef MESH_FI_UTILS_PEER_SOCKET_H
#define MESH_FI_UTILS_PEER_SOCKET_H

#include <stdint.h>

#include "nic/addr.h"

/**
 * Starts to connect to @remote from @local's address; NULL: the kernel's routes decide. Returns a
 * non-blocking descriptor, or a negative errno.
 */
int peer_socket_connect(const struct mesh_addr *local, const struct mesh_addr *remote,
			uint16_t port);

/** A listening socket, or a negative errno. */
int peer_socket_listen(const struct mesh_addr *local, uint16_t port);

#endif
