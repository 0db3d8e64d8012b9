/* SPDX-License-Identifier: Apache-2.0 */
/* connect.h - makes a sending comm. */
#ifndef MESH_SETUP_CONNECT_H
#define MESH_SETUP_CONNECT_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"
#include "setup/connecting.h"

/** Ends a connection attempt, and frees it with everything it holds. process->lock held. */
MESH_HOLDS(process)
void mesh_connect_free(struct mesh_connect *connect);

/**
 * Connects to the listener behind @handle, which came from another process and is not trusted.
 * Call it again with the same @handle buffer until *comm is not NULL: state is kept in the buffer
 * (MESH_HANDLE_BYTES bytes, writable, any alignment).
 *
 * Returns 0, with *comm NULL while the connection is not ready; or a negative errno, with *comm
 * NULL, after which the attempt is over.
 */
int mesh_net_connect(struct mesh_net *net, int dev, void *handle, struct mesh_comm **comm);

#endif
