/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_routes.h - the nodes to which links or routes lead that let nothing through: a connection
 * has waited for them in vain, and gone over relays. Further ones wait for a short time only.
 */
#ifndef MESH_SETUP_DEAD_ROUTES_H
#define MESH_SETUP_DEAD_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "setup/setup.h"

/** @connect has waited in vain: its candidates have let nothing through. */
MESH_HOLDS(process)
void mesh_dead_routes_add(const struct mesh_connect *connect);

/** True if that was so of the same candidates to the node: a new one may let something through. */
MESH_HOLDS(process)
bool mesh_dead_routes_have(const struct mesh_connect *connect);

/** A link or route to this node lets something through. */
MESH_HOLDS(process)
void mesh_dead_routes_remove(struct mesh_process *process, uint64_t node_id);

/** Links or addresses of this node have changed: nothing is remembered from now on. */
MESH_HOLDS(process)
void mesh_dead_routes_clear(struct mesh_process *process);

#endif
