/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_send.h - sends the frames of a control connection. All with process->lock held.
 *
 * A link of which a NIC is drained goes out of use: comms that have another path post nothing more
 * on it (docs/protocol/recovery.md). PORT says which TCP port our provider
 * connected from: one list of the process's sockets shows it for all peers that came up meanwhile.
 */
#ifndef MESH_CONTROL_PEER_SEND_H
#define MESH_CONTROL_PEER_SEND_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/** Sends a frame, or queues it. If that fails, its link is lost soon after. */
MESH_HOLDS(process)
void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type);

/** Refuses the peer's HELLO or, if @comm is not 0, the CONNECT of its comm @comm. */
MESH_HOLDS(process)
void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm);

/** Sends HELLO. */
MESH_HOLDS(process)
void mesh_peer_hello_send(struct mesh_peer *peer);

/** Sends the frames in peer->out, as far as the socket accepts them. */
MESH_HOLDS(process)
void mesh_peer_flush(struct mesh_peer *peer);

/** True if our NIC on the link or the peer's is drained: comms with another path leave it. */
MESH_HOLDS(process)
bool mesh_peer_is_drained(const struct mesh_peer *peer);

/** HELLO or NICS from the peer's process has all of its NICs; users learn which are drained. */
MESH_HOLDS(process)
void mesh_peer_drained_learn(struct mesh_peer *peer, const struct mesh_wire_nic *nics,
			     int num_nics);

/** A NIC has joined, is drained, or no longer: peers and users learn of it. */
MESH_HOLDS(process)
void mesh_peers_nics_changed(struct mesh_process *process);

/** Reports the port to @peer if that is due: its own end of the connection is found by it. */
MESH_HOLDS(process)
void mesh_peer_port_report(struct mesh_peer *peer, uint64_t now_ms);

#endif
