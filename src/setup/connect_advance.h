/* SPDX-License-Identifier: Apache-2.0 */
/* connect_advance.h - makes a sending comm, in the engine. All with process->lock held. */
#ifndef MESH_SETUP_CONNECT_ADVANCE_H
#define MESH_SETUP_CONNECT_ADVANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "setup/connecting.h"

/** Advances it as far as possible now. */
MESH_HOLDS(process)
void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms);

/** NCCL gets the comm of one that is DONE; then the attempt is to be freed. */
MESH_HOLDS(process)
struct mesh_comm *mesh_connect_take(struct mesh_connect *connect);

/** Gives it up, unless NCCL has its result, and frees what it holds. */
MESH_HOLDS(process)
void mesh_connect_end(struct mesh_connect *connect);

/**
 * Handle ACCEPT, and REFUSE of a CONNECT. Returns false if no attempt waits for this ACCEPT.
 */
MESH_HOLDS(process)
bool mesh_connect_accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame);
MESH_HOLDS(process)
void mesh_connect_refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame);
/** Handles OPENED. Returns false if nothing here waits for it. */
MESH_HOLDS(process)
bool mesh_connect_opened_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
