/* SPDX-License-Identifier: Apache-2.0 */
/* path_park.h - a comm leaves a path whose link is taken out of use, if it has another one. */
#ifndef MESH_TRANSPORT_PATH_PARK_H
#define MESH_TRANSPORT_PATH_PARK_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** The path's link is taken out of use, or used again. Takes comm->lock. */
MESH_HOLDS(process)
void mesh_path_park(struct mesh_path *path, enum mesh_park_state state);

/**
 * True if the comm posts nothing on the path, and nothing of it is in flight there; on a drained
 * link also that nothing was posted since. Takes comm->lock.
 */
MESH_HOLDS(process)
bool mesh_path_is_idle(const struct mesh_path *path);

#endif
