/* SPDX-License-Identifier: Apache-2.0 */
/* circuit_end.h - what a comm does when a circuit that one of its paths leads through breaks. */
#ifndef MESH_TRANSPORT_CIRCUIT_END_H
#define MESH_TRANSPORT_CIRCUIT_END_H

#include "control/peer.h"
#include "wire/frame.h"

/** CIRCUIT came over @peer for a path that ends here. process->lock held. */
MESH_HOLDS(process)
void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
