/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuits.h - what happens to the circuits of this process that are open: frames, lost peers,
 * their end.
 */
#ifndef MESH_RELAY_CIRCUITS_H
#define MESH_RELAY_CIRCUITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"

struct mesh_relay;

/** Ends and frees circuits that are due. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_tick(struct mesh_process *process, uint64_t now_ms);

/** Frees all of them at the end of the plugin, after mesh_relay_stop(). process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_close(struct mesh_process *process);

/** True if a circuit through this process ends at that node. process->lock held. */
MESH_HOLDS(process)
bool mesh_circuits_end_at(const struct mesh_process *process, uint64_t node_id);

/** True if a circuit has led to the listener with @cookie, whose process has ended just now. */
MESH_HOLDS(process)
bool mesh_circuits_target_is_over(const struct mesh_relay *relay, uint64_t cookie);

/** A NIC has no carrier: breaks the circuits over it. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_carrier_lost(struct mesh_process *process, const struct mesh_domain *domain);

/**
 * The function of the timer of an open circuit: ends what is broken, and frees the circuit when
 * nothing of it is in flight.
 */
MESH_HOLDS(process)
void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms);

/**
 * Handles CIRCUIT if it names a circuit that leads through this process; else returns false: then
 * it is for an end that is here.
 */
MESH_HOLDS(process)
bool mesh_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/** The same for a frame about a comm (wire/frame.h: to_comm), which is passed on. */
MESH_HOLDS(process)
bool mesh_circuit_frame_pass(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
