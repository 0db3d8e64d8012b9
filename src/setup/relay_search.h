/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_search.h - searches of the mesh for relays (relay_try.h), and how long what is missing in
 * their results is hoped for. All with process->lock held.
 */
#ifndef MESH_SETUP_RELAY_SEARCH_H
#define MESH_SETUP_RELAY_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct mesh_process;

/** Searches the mesh, unless that was done a moment ago. */
MESH_HOLDS(process)
void mesh_relay_search(struct mesh_process *process, uint64_t now_ms);

/** True if the mesh was searched not long ago. */
MESH_HOLDS(process)
bool mesh_relay_search_is_fresh(struct mesh_process *process, uint64_t now_ms);

/**
 * True if the result of the latest search counts. A node asks its neighbours once a second, so the
 * first search may miss links of ranks that have started at the same time as this one.
 *
 * @target: the node to which a route is wanted
 * @before_tcp: only one that goes before routed tcp
 */
MESH_HOLDS(process)
bool mesh_relay_search_counts(struct mesh_process *process, uint64_t target, bool before_tcp,
			      uint64_t now_ms);

/**
 * True if no route with RDMA on each hop is to be expected any longer, though none is known: no
 * link may be confirmed that it lacks, or none was in time, for this connection or for an earlier
 * one (dead_routes.h).
 *
 * @found_ms: since when a search counts for this connection
 */
MESH_HOLDS(process)
bool mesh_relay_hope_is_vain(struct mesh_process *process, uint64_t target, uint64_t found_ms,
			     uint64_t now_ms);

/** Searches again, unless the latest search goes on: what it has found is not all. */
MESH_HOLDS(process)
void mesh_relay_hope_search(struct mesh_process *process, uint64_t now_ms);

#endif
