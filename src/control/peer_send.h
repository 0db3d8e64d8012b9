/* SPDX-License-Identifier: Apache-2.0 */
/* peer_send.h - sends the frames of a control connection. All with process->lock held. */
#ifndef MESH_CONTROL_PEER_SEND_H
#define MESH_CONTROL_PEER_SEND_H

#include "control/peer.h"

/** Sends a frame, or queues it. What fails shows as a lost peer. process->lock held. */
void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type);

/** Refuses its HELLO, or the CONNECT of its comm @comm if that is not 0. process->lock held. */
void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm);

/** Introduces ourselves. */
void mesh_peer_hello_send(struct mesh_peer *peer);

/** Tells the peer which of its provider's sockets is ours. */
void mesh_peer_port_send(struct mesh_peer *peer);

/** Sends what waits in peer->out, as far as the socket takes it. */
void mesh_peer_flush(struct mesh_peer *peer);

#endif
