/* SPDX-License-Identifier: Apache-2.0 */
/* peer_send.h - sends the frames of a control connection. All with process->lock held. */
#ifndef MESH_CONTROL_PEER_SEND_H
#define MESH_CONTROL_PEER_SEND_H

#include "base/lock.h"
#include "control/peer.h"

/** Sends a frame, or queues it. If that fails, its link is lost soon after. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type);

/**
 * Refuses the peer's HELLO or, if @comm is not 0, the CONNECT of its comm @comm. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm);

/** Sends HELLO. */
MESH_HOLDS(process)
void mesh_peer_hello_send(struct mesh_peer *peer);

/** Sends the frames in peer->out, as far as the socket accepts them. */
MESH_HOLDS(process)
void mesh_peer_flush(struct mesh_peer *peer);

/** Sends NICS: all NICs of this process. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_nics_send(struct mesh_peer *peer);

#endif
