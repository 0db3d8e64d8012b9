/* SPDX-License-Identifier: Apache-2.0 */
/* comm_end.h - the states of a comm's two ends, from open to closed. */
#ifndef MESH_TRANSPORT_COMM_END_H
#define MESH_TRANSPORT_COMM_END_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** True if this step is legal. */
bool mesh_end_may_become(enum mesh_end end, enum mesh_end state);

/**
 * Changes the state of an end, which no other code may do; asserts the legal steps. comm->lock
 * held.
 *
 * @end: &comm->own_end or &comm->peer_end
 */
MESH_HOLDS(comm)
void mesh_comm_end_set(struct mesh_comm *comm, enum mesh_end *end, enum mesh_end state);

/** Notes what the peer reports about its end; a late report is ignored. comm->lock held. */
MESH_HOLDS(comm)
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state);

/**
 * Ends the comm at once, at both ends: no frame is sent, and what was in flight is lost. Logs @why
 * at INFO only, because the caller logs one line for all of its comms. process->lock held.
 *
 * Returns whether NCCL still used it.
 */
MESH_HOLDS(process)
bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why);

/** Ends the comm, because its peer is lost. process->lock and domain->lock held. */
MESH_HOLDS(process)
void mesh_comm_peer_lost(struct mesh_comm *comm);

#endif
