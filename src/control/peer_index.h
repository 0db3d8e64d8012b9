/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_index.h - finds peers without a walk over all of them: by the process at the other end, and
 * by their address. All with process->lock held.
 */
#ifndef MESH_CONTROL_PEER_INDEX_H
#define MESH_CONTROL_PEER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "nic/addr.h"

/** The peer's process is known, or another one than before. */
MESH_HOLDS(process)
void mesh_peer_process_set(struct mesh_peer *peer, uint64_t process_id);

/**
 * Adds a peer by its address and control port, which are constant from now on: an outgoing one when
 * it is made, an incoming one, which has the control port 0, when it is up.
 */
MESH_HOLDS(process)
void mesh_peer_index_add(struct mesh_peer *peer);

/** Removes the peer from the whole index. */
MESH_HOLDS(process)
void mesh_peer_index_remove(struct mesh_peer *peer);

/**
 * Iterates over the peers of one process: over all links, in both directions, @peer included, even
 * if its process is not known yet.
 *
 * @previous: what the last call returned; NULL: begins
 *
 * Returns NULL after the last one. process->lock held.
 */
MESH_HOLDS(process)
struct mesh_peer *mesh_peer_of_process(const struct mesh_peer *peer, struct mesh_peer *previous);

/** True if another peer that is up, as of the link's other direction, has the peer's flow. */
MESH_HOLDS(process)
bool mesh_peer_flow_is_shared(const struct mesh_peer *peer);

/** True if a comm of ours has, or had, a path to the process, which has not ended. */
MESH_HOLDS(process)
bool mesh_process_is_known(const struct mesh_process *process, uint64_t process_id);

/** True if an incoming peer with this address is up. */
MESH_HOLDS(process)
bool mesh_peer_node_is_known(const struct mesh_process *process, const struct mesh_addr *address);

/** Since when the way's address is dialled, for any process; 0: it is not, or one there is up. */
MESH_HOLDS(process)
uint64_t mesh_way_tried_ms(const struct mesh_process *process, const struct mesh_way *way);

/** The peers that may have this address: those of one bucket. */
MESH_HOLDS(process)
const struct mesh_peer_bucket *mesh_peers_at(const struct mesh_process *process,
					     const struct mesh_addr *address,
					     uint16_t control_port);

#endif
