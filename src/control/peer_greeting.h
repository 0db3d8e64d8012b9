/* SPDX-License-Identifier: Apache-2.0 */
/* peer_greeting.h - proves that the fabric works in both directions, before any comm is made. */
#ifndef MESH_CONTROL_PEER_GREETING_H
#define MESH_CONTROL_PEER_GREETING_H

#include "base/lock.h"
#include "control/peer.h"

/** Starts to greet: from HELLO both sides know each other's endpoint. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_greet(struct mesh_peer *peer);

/** Ends the greeting once it was answered, or has failed. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_greeting_check(struct mesh_peer *peer);

/**
 * Takes the peers that a greeting has arrived for, or failed, since the last call. NULL: none. The
 * next one is to be fetched before a peer is checked, which may free it.
 */
struct mesh_peer *mesh_peers_greeted(struct mesh_process *process);
struct mesh_peer *mesh_peer_greeted_next(struct mesh_peer *peer);

/** Handles GREET or its reply: the function of peer->sink. domain->lock held. */
void mesh_peer_greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
				const void *payload);

/**
 * Sends GREET once more, if its answer has not come: if both ends connect at the same time, the
 * provider ends one of the two connections, and drops what waits there. process->lock held.
 */
MESH_HOLDS(process)
void mesh_peer_greet_again(struct mesh_peer *peer);

#endif
