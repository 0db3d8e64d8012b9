/* SPDX-License-Identifier: Apache-2.0 */
/* circuits.h - the circuits that lead through this process: frames, lost peers, their end. */
#ifndef MESH_RELAY_CIRCUITS_H
#define MESH_RELAY_CIRCUITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"

/*
 * A relay answers OPEN within this, and the listener CONNECT: each relay has it for what lies
 * behind it.
 */
#define MESH_OPEN_ANSWER_MS 15000

/** Ends and frees circuits that are due. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_tick(struct mesh_process *process, uint64_t now_ms);

/** Frees all of them at the end of the plugin, after mesh_relay_stop(). process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_close(struct mesh_process *process);

/** True if a circuit through this process ends at that node. process->lock held. */
MESH_HOLDS(process)
bool mesh_circuits_end_at(const struct mesh_process *process, uint64_t node_id);

/** A NIC has no carrier: breaks the circuits over it. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_carrier_lost(struct mesh_process *process, const struct mesh_domain *domain);

/**
 * Handles CIRCUIT if it names a circuit that leads through this process; else returns false: then
 * it is for an end that is here.
 */
MESH_HOLDS(process)
bool mesh_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/** The same for a frame about a comm (wire/frame.h: to_comm), which is passed on. */
MESH_HOLDS(process)
bool mesh_circuit_frame_pass(struct mesh_peer *peer, const struct mesh_frame *frame);

/* ---- opening.c ------------------------------------------------------------------------------- */

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
