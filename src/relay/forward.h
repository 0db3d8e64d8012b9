/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - what a circuit forwards: messages in both directions, and segments. */
#ifndef MESH_RELAY_FORWARD_H
#define MESH_RELAY_FORWARD_H

#include <stdint.h>

#include "base/lock.h"
#include "relay/circuit.h"

/* For mesh_circuit_make(). */
extern const struct mesh_circuit_functions mesh_circuit_forwarding;

/** The side of a circuit that an id of ours names on this peer's link; NULL: there is none. */
MESH_HOLDS(process)
struct mesh_circuit_side *mesh_circuit_side_find(struct mesh_peer *peer, uint32_t id);

/**
 * The circuit is open: sends the connecting end what the other one has sent meanwhile. Until then
 * nothing of a circuit is in flight, so that it can be freed at once.
 */
void mesh_circuit_up_begin(struct mesh_circuit *circuit);

/** A write into the next relay's memory is complete: hop->written. */
MESH_HOLDS(domain)
void mesh_circuit_hop_written(struct mesh_hop_segment *segment, int error);

/** Ends the segments that wait for ARRIVED, which will not come. circuit->lock held. */
MESH_HOLDS(circuit)
void mesh_circuit_abandon(struct mesh_circuit *circuit);

#endif
