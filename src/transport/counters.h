/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h - what the plugin counts for `fi_mesh watch` (src/wire/stats.h has the page).
 *
 * Counting is an addition in memory, under a lock that is held anyway. It never fails: a path for
 * which the page has no room counts in memory that no tool reads.
 */
#ifndef MESH_TRANSPORT_COUNTERS_H
#define MESH_TRANSPORT_COUNTERS_H

#include "base/lock.h"
#include "wire/stats.h"

struct mesh_path;

/** Assigns counters to a new path, and releases them. process->lock held, comm->lock not. */
MESH_HOLDS(process)
void mesh_path_counters_open(struct mesh_path *path);
MESH_HOLDS(process)
void mesh_path_counters_close(struct mesh_path *path);

/** The path has changed its state: counts a loss, and shows whether it is down. comm->lock held. */
MESH_HOLDS(comm)
void mesh_path_counters_state(struct mesh_path *path);

/** Shows whether the path is out of use, because its link is. comm->lock held. */
MESH_HOLDS(comm)
void mesh_path_counters_parked(struct mesh_path *path);

#endif
