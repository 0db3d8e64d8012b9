/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_routes.h - the nodes to which links or routes lead that let nothing through: a connection
 * has waited for them in vain, and gone over relays. And those to which relays lead with RDMA on
 * each hop that nobody can use: a connection has waited for them in vain, and taken routed tcp.
 * Further ones wait for a short time only. Those to which such relays would lead if a link was
 * confirmed, which did not happen in time: further ones do not wait for these links.
 */
#ifndef MESH_SETUP_DEAD_ROUTES_H
#define MESH_SETUP_DEAD_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "setup/setup.h"

/**
 * @connect has waited in vain: its routed candidates have let nothing through, and there are no
 * others to try now; or no relay with RDMA could be used.
 */
MESH_HOLDS(process)
void mesh_dead_routes_add(const struct mesh_connect *connect, enum mesh_dead_kind kind);

/**
 * True if that was so for the same node. MESH_DEAD_ROUTED: and for the same candidates: a new one
 * may let something through.
 */
MESH_HOLDS(process)
bool mesh_dead_routes_have(const struct mesh_connect *connect, enum mesh_dead_kind kind);

/**
 * The links that such relays to this node lack were not confirmed in time.
 *
 * @hope: which ones: mesh_neighbours_rdma_hope()
 */
MESH_HOLDS(process)
void mesh_dead_routes_hope_add(struct mesh_process *process, uint64_t node_id, uint64_t hope);

/** True if that was so of the same links. */
MESH_HOLDS(process)
bool mesh_dead_routes_have_hope(struct mesh_process *process, uint64_t node_id, uint64_t hope);

/** A route of this kind to this node lets something through; HOPE: relays lead there. */
MESH_HOLDS(process)
void mesh_dead_routes_remove(struct mesh_process *process, uint64_t node_id,
			     enum mesh_dead_kind kind);

/** Links or addresses of this node have changed: nothing is remembered from now on. */
MESH_HOLDS(process)
void mesh_dead_routes_clear(struct mesh_process *process);

#endif
