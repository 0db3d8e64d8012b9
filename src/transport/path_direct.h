/* SPDX-License-Identifier: Apache-2.0 */
/* path_direct.h - direct paths: one of our NICs and the peer's NIC on the same link. */
#ifndef MESH_TRANSPORT_PATH_DIRECT_H
#define MESH_TRANSPORT_PATH_DIRECT_H

#include "transport/path.h"

/**
 * Opens a direct path through @peer. The caller has set path->comm, the sink's functions and token,
 * and the waiter's function. process->lock held; takes domain->lock.
 *
 * Returns 0, or -ENOSPC if the domain has no id left.
 */
int mesh_path_direct_open(struct mesh_path *path, struct mesh_peer *peer);

#endif
