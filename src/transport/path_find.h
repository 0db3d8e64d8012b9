/* SPDX-License-Identifier: Apache-2.0 */
/* path_find.h - finds the path that a frame names. */
#ifndef MESH_TRANSPORT_PATH_FIND_H
#define MESH_TRANSPORT_PATH_FIND_H

#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/** The path that has this id at our end, if @peer is its peer; else NULL. process->lock held. */
MESH_HOLDS(process)
struct mesh_path *mesh_comm_path_find(struct mesh_peer *peer, uint32_t id);

#endif
