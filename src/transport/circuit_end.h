/* SPDX-License-Identifier: Apache-2.0 */
/* circuit_end.h - what a comm does when a circuit that one of its paths leads through breaks. */
#ifndef MESH_TRANSPORT_CIRCUIT_END_H
#define MESH_TRANSPORT_CIRCUIT_END_H

#include "base/lock.h"
#include "control/peer.h"
#include "transport/path.h"
#include "wire/frame.h"

/** The path's circuit is broken, or is left: @event says where. process->lock held. */
MESH_HOLDS(process)
void mesh_path_circuit_lost(struct mesh_path *path, const struct mesh_frame_circuit *event);

/** CIRCUIT came over @peer for a path that ends here. process->lock held. */
MESH_HOLDS(process)
void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/**
 * Informs the other end, over another path, that this end has left @path for the reason in @found:
 * what is in a stopped relay, it may wait for. process->lock held.
 */
MESH_HOLDS(process)
void mesh_path_left_send(const struct mesh_path *path, const struct mesh_frame_circuit *found);

/**
 * Leaves a path through relays that is up, because the comm has a better one: the relays learn that
 * and the other end. process->lock held; takes domain->lock and comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_leave(struct mesh_path *path);

#endif
