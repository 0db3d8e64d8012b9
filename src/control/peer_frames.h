/* SPDX-License-Identifier: Apache-2.0 */
/* peer_frames.h - handles the frames that arrive over a control connection. */
#ifndef MESH_CONTROL_PEER_FRAMES_H
#define MESH_CONTROL_PEER_FRAMES_H

#include "base/lock.h"
#include "control/peer.h"

/**
 * Handles the complete frames in peer->in. A peer that has no domain yet sends HELLO first: that
 * waits in peer->in while its domain is being opened. process->lock held.
 */
MESH_HOLDS(process)
void mesh_peer_frames_handle(struct mesh_peer *peer);

/**
 * Handles the HELLOs that wait for a domain: one was opened, or cannot be. process->lock held.
 */
MESH_HOLDS(process)
void mesh_peers_hello_resume(struct mesh_process *process);

#endif
