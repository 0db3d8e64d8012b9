/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h - what the plugin counts for `fi_mesh watch` (src/wire/stats.h has the page).
 *
 * Counting is an addition in memory, under a lock that is held anyway. It never fails: what finds
 * no place in the page is counted where nobody looks.
 */
#ifndef MESH_TRANSPORT_COUNTERS_H
#define MESH_TRANSPORT_COUNTERS_H

#include "wire/stats.h"

struct mesh_node;
struct mesh_path;
struct mesh_comm;
struct mesh_remote;

/** Makes the process's page, and removes it. node->lock held, and no path open. */
void mesh_counters_open(struct mesh_node *node);
void mesh_counters_close(struct mesh_node *node);

/** Gives a new path its counters, and takes them back. node->lock held, comm->lock not. */
void mesh_path_counters_open(struct mesh_path *path);
void mesh_path_counters_close(struct mesh_path *path);

/** An operation to @remote, which is that of one of comm's paths, failed. comm->lock held. */
void mesh_comm_count_error(struct mesh_comm *comm, const struct mesh_remote *remote);

/** An event of the process. Rare, so that any lock or none may be held. */
static inline void mesh_count_event(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
