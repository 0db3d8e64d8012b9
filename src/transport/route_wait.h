/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_wait.h - a comm that has lost its paths waits for one, for NCCL_MESH_RECOVERY_TIMEOUT. All
 * with process->lock held, and no comm's.
 */
#ifndef MESH_TRANSPORT_ROUTE_WAIT_H
#define MESH_TRANSPORT_ROUTE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"

/** A path through relays is lost: a route is looked for. */
MESH_HOLDS(process)
void mesh_reroute_want(const struct mesh_path *path);

/** The same for a comm that NCCL has just got: its path may have been lost before. */
MESH_HOLDS(process)
void mesh_reroute_soon(struct mesh_comm *comm);

/** The hop between two nodes, by their ids, has failed: routes avoid it for a while. 0: unknown */
MESH_HOLDS(process)
void mesh_route_doubt(const struct mesh_process *process, uint64_t node, uint64_t other);

/** Remembers what was lost, in words, for the message if no route comes back. */
MESH_HOLDS(process)
void mesh_route_loss_note(struct mesh_comm *comm, const char *text);

/** True for a sending comm that waits for a route, and may get one. */
MESH_HOLDS(process)
bool mesh_comm_lacks_route(const struct mesh_comm *comm);

/**
 * True for a sending comm that goes on, and may get a route that is better than what it has, or
 * another one for a path through relays that it has lost. Takes comm->lock.
 */
MESH_HOLDS(process)
bool mesh_comm_lacks_path(struct mesh_comm *comm);

/** Ends the comm if it has waited for a path for too long. */
MESH_HOLDS(process)
void mesh_route_wait_end(struct mesh_comm *comm, uint64_t now_ms);

/**
 * Learns since when the comm waits, and ends the wait of one that has relays only: whether a link's
 * process is stopped is known when that is looked at (rejoin.h). To be called ten times a second.
 */
MESH_HOLDS(process)
void mesh_route_wait_tick(struct mesh_comm *comm, uint64_t now_ms);

#endif
