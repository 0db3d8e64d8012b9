/* SPDX-License-Identifier: Apache-2.0 */
/* grants.h - which grants a receiving comm sends, and when: docs/protocol/data.md. */
#ifndef MESH_TRANSPORT_GRANTS_H
#define MESH_TRANSPORT_GRANTS_H

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Sends the grants that are due, and POSTED. What finds no free buffer is sent from a later poll.
 * comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update(struct mesh_comm *comm);

/**
 * The same after a receive was posted. A sender that holds grants does not wait for this one: the
 * next poll sends it, after what NCCL sends before that, which is usually the answer to the last
 * message. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update_soon(struct mesh_comm *comm);

#endif
