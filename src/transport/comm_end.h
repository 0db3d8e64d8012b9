/* SPDX-License-Identifier: Apache-2.0 */
/* comm_end.h - the two ends of a comm: how far each is on its way to be closed. */
#ifndef MESH_TRANSPORT_COMM_END_H
#define MESH_TRANSPORT_COMM_END_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** True if this step is legal. */
bool mesh_end_may_become(enum mesh_end end, enum mesh_end state);

/**
 * The only way to change the state of an end; asserts the legal steps. comm->lock held.
 *
 * @end: &comm->own_end or &comm->peer_end
 */
MESH_HOLDS(comm)
void mesh_comm_end_set(struct mesh_comm *comm, enum mesh_end *end, enum mesh_end state);

/** Notes what the peer reports of its end; a late report is ignored. comm->lock held. */
MESH_HOLDS(comm)
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state);

/**
 * Ends it at once, at both ends: no frame is exchanged, and what was in flight is lost. Quiet:
 * the caller has a line for all of its comms. process->lock held.
 *
 * Returns whether NCCL still used it.
 */
MESH_HOLDS(process)
bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why);

/** Its peer is lost. process->lock and domain->lock held. */
MESH_HOLDS(process)
void mesh_comm_peer_lost(struct mesh_comm *comm);

#endif
