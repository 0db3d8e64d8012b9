/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_frames.h - handles the frames that arrive over a control connection. HELLO comes first; then
 * a greeting proves that the fabric works in both directions, before any comm is made. All with
 * process->lock held, but mesh_peer_greeting_arrived().
 */
#ifndef MESH_CONTROL_PEER_FRAMES_H
#define MESH_CONTROL_PEER_FRAMES_H

#include "base/lock.h"
#include "control/peer.h"

/**
 * Handles the complete frames in peer->in. A peer that has no domain yet sends HELLO first: that
 * waits in peer->in while its domain is being opened.
 */
MESH_HOLDS(process)
void mesh_peer_frames_handle(struct mesh_peer *peer);

/** Handles the HELLOs that wait for a domain: one was opened, or cannot be. */
MESH_HOLDS(process)
void mesh_peers_hello_resume(struct mesh_process *process);

/** Sends the greeting, until it was answered, or has failed, and ends it then. */
MESH_HOLDS(process)
void mesh_peer_greeting_check(struct mesh_peer *peer, uint64_t now_ms);

/** Handles GREET or its reply: the function of peer->sink. domain->lock held. */
void mesh_peer_greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
				const void *payload);

#endif
