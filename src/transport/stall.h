/* SPDX-License-Identifier: Apache-2.0 */
/* stall.h - finds messages that were lost on the way, and relays that are stopped. */
#ifndef MESH_TRANSPORT_STALL_H
#define MESH_TRANSPORT_STALL_H

#include "base/lock.h"
#include "transport/comm.h"

/** Send ASK when it is due, and answer the peer's (stall.c). process->lock held. */
MESH_HOLDS(process)
void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms);
MESH_HOLDS(process)
void mesh_stall_asked(struct mesh_comm *comm, const struct mesh_frame_ask *ask);

#endif
