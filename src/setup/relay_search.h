/* SPDX-License-Identifier: Apache-2.0 */
/* relay_search.h - searches of the mesh for relays (relay_try.h). All with process->lock held. */
#ifndef MESH_SETUP_RELAY_SEARCH_H
#define MESH_SETUP_RELAY_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct mesh_process;

/** Searches the mesh, unless that was done a moment ago. */
MESH_HOLDS(process)
void mesh_relay_search(struct mesh_process *process, uint64_t now_ms);

/**
 * True if the result of the latest search counts. A node asks its neighbours once a second, so the
 * first search may miss links of ranks that have started at the same time as this one.
 *
 * @target: the node to which a route is wanted
 */
MESH_HOLDS(process)
bool mesh_relay_search_counts(struct mesh_process *process, uint64_t target, uint64_t now_ms);

#endif
