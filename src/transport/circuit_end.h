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

#endif
