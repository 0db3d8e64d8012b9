/* SPDX-License-Identifier: Apache-2.0 */
/* path_park.h - a comm leaves a path whose link is taken out of use, if it has another one. */
#ifndef MESH_TRANSPORT_PATH_PARK_H
#define MESH_TRANSPORT_PATH_PARK_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** The path's link is taken out of use, or used again. Takes comm->lock. */
MESH_HOLDS(process)
void mesh_path_park(struct mesh_path *path, bool parked);

/** True if the comm posts nothing on the path, and waits for nothing there. Takes comm->lock. */
MESH_HOLDS(process)
bool mesh_path_is_idle(const struct mesh_path *path);

#endif
