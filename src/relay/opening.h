/* SPDX-License-Identifier: Apache-2.0 */
/* opening.h - opens circuits: OPEN, and the answers to what this relay has asked for them. */
#ifndef MESH_RELAY_OPENING_H
#define MESH_RELAY_OPENING_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"

/*
 * A relay answers OPEN within this, and the listener CONNECT: each relay has it for what lies
 * behind it.
 */
#define MESH_OPEN_ANSWER_MS 15000

/** Handles OPEN: makes a circuit, or refuses it. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_open_came(struct mesh_peer *peer, const struct mesh_frame *frame);

/** Answers OPENED for a path that no longer exists: the circuit is withdrawn. */
MESH_HOLDS(process)
void mesh_circuit_opened_in_vain(struct mesh_peer *peer, const struct mesh_frame *frame);

/** Answers ACCEPT for a circuit that no longer exists: it is lost, and nothing was written. */
MESH_HOLDS(process)
void mesh_circuit_accepted_in_vain(struct mesh_peer *peer, const struct mesh_frame *frame);

/**
 * These handle a frame if it answers what a circuit of this process has asked.
 *
 * Return false if it does not: then the frame is for an end that is here.
 */
MESH_HOLDS(process)
bool mesh_circuit_accepted(struct mesh_peer *peer, const struct mesh_frame *frame);
MESH_HOLDS(process)
bool mesh_circuit_refused(struct mesh_peer *peer, const struct mesh_frame *frame);
MESH_HOLDS(process)
bool mesh_circuit_opened(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
