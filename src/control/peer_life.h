/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_life.h - the life of a peer: it connects, sends HELLO, greets, retries, ends; and dials,
 * which make a way to another process real: a dial opens our domain, and has a peer made. Its owner
 * looks at it from time to time, and decides how long it waits, and what comes next.
 *
 * All with process->lock held.
 */
#ifndef MESH_CONTROL_PEER_LIFE_H
#define MESH_CONTROL_PEER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "control/process.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

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

/* ---- dials --------------------------------------------------------------------------------- */

/** Names the listener of @handle as the one that the way leads to. */
void mesh_way_listener_set(struct mesh_way *way, const struct mesh_handle *handle);

/**
 * The way to the listener of @handle over a pair of NICs.
 *
 * Returns false if our NIC has no domain for the pair's provider.
 */
MESH_HOLDS(process)
bool mesh_way_of_pair(const struct mesh_process *process, const struct mesh_handle *handle,
		      const struct mesh_path_candidate *pair, struct mesh_way *way);

enum mesh_dial_state {
	MESH_DIAL_REST,
	MESH_DIAL_OPENING, /* our domain is being opened */
	MESH_DIAL_TRYING,
	MESH_DIAL_UP,
	MESH_DIAL_DEAD, /* peer says why, or error does */
	MESH_DIAL_STATES
};

/* Zeros: at rest. */
struct mesh_dial {
	struct mesh_process *process;
	struct mesh_way way;
	enum mesh_dial_state state;
	uint64_t since_ms;	/* when it entered its state */
	struct mesh_peer *peer; /* this is one user of it; NULL: our domain is not open */
	/*
	 * DEAD without a peer: -ENETDOWN: our NIC has no carrier; -ENODEV: it cannot be opened
	 * (logged); else what mesh_peer_get() has said.
	 */
	int error;
};

/**
 * Begins to dial @way. The dial is at rest.
 *
 * @again: our domain is opened also if that has failed a moment ago
 *
 * Returns 0, or what is said of mesh_dial.error: then the dial is at rest again.
 */
MESH_HOLDS(process)
int mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
		    const struct mesh_way *way, bool again, uint64_t now_ms);

/** Learns what has become of it. Returns its state. */
MESH_HOLDS(process)
enum mesh_dial_state mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms);

/**
 * True if it is dead, or another way should be tried now: no process listens there, or it took
 * MESH_DIAL_MS; three times that if libfabric opens our NIC, which takes seconds on ofi_rxm.
 */
MESH_HOLDS(process)
bool mesh_dial_is_vain(const struct mesh_dial *dial, uint64_t now_ms);

/** Leaves the peer, if there is one: the dial is at rest. */
MESH_HOLDS(process)
void mesh_dial_end(struct mesh_dial *dial);

#endif
