/* SPDX-License-Identifier: Apache-2.0 */
/* doubts.h - ends a sender's doubts about messages when the receiver closes. */
#ifndef MESH_TRANSPORT_DOUBTS_H
#define MESH_TRANSPORT_DOUBTS_H

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Completes the requests in doubt of which the receiver has said, in its CLOSED, that it has them.
 * Those of which an operation is in flight complete with a later call.
 */
MESH_HOLDS(comm)
void mesh_doubts_end(struct mesh_comm *comm);

#endif
