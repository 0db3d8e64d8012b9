/* SPDX-License-Identifier: Apache-2.0 */
/* peer_life.h - the life of a peer: it connects, sends HELLO, greets, retries, ends. */
#ifndef MESH_CONTROL_PEER_LIFE_H
#define MESH_CONTROL_PEER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"

/**
 * Finds or makes the outgoing peer at the other end of @way, and counts one user. Starts to connect
 * if it is new. Our domain is open. process->lock held.
 *
 * Returns 0, or a negative errno: no memory, or -ENOSPC if the domain has no id left.
 */
MESH_HOLDS(process)
int mesh_peer_get(struct mesh_process *process, const struct mesh_way *way,
		  struct mesh_peer **peer);

/**
 * Makes an incoming peer from an accepted socket, and owns the socket. The same errors. It gets a
 * domain when it has sent a HELLO that is admitted: nobody else has one opened.
 *
 * @dev: the NIC that it has connected to
 */
MESH_HOLDS(process)
int mesh_peer_accept(struct mesh_process *process, int dev, int fd, const struct mesh_addr *from);

/**
 * Handles what the kernel has received from all peers that are up: before a link is lost, whose
 * control connections are then closed with whatever lies there. It may be the last word about a
 * comm. process->lock held, and no walk over comms or peers is under way.
 */
MESH_HOLDS(process)
void mesh_peers_unread_handle(struct mesh_process *process);

/** Frees the peer with everything it holds, at shutdown. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_free(struct mesh_peer *peer);

/**
 * The function of peer->timer: retries and deadlines of one peer, and sets the time of the next
 * call. May free the peer, but no other one. process->lock held.
 */
MESH_HOLDS(process)
void mesh_peer_tick(struct mesh_timer *timer, uint64_t now_ms);

/** Has those checked that a greeting has arrived for, or failed, since the last call. */
MESH_HOLDS(process)
void mesh_peers_greeted_check(struct mesh_process *process);

#endif
