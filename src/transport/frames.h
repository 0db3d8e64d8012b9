/* SPDX-License-Identifier: Apache-2.0 */
/* frames.h - the frames of the control connection that are for a comm. */
#ifndef MESH_TRANSPORT_FRAMES_H
#define MESH_TRANSPORT_FRAMES_H

#include "base/lock.h"
#include "control/peer.h"

/** CLOSE, CLOSED, ASK, SENT, RESUME and HAVE. */
MESH_HOLDS(process)
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
