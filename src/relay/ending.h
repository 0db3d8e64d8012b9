/* SPDX-License-Identifier: Apache-2.0 */
/* ending.h - ends circuits, and frees them when nothing of them is in flight. */
#ifndef MESH_RELAY_ENDING_H
#define MESH_RELAY_ENDING_H

#include <stdint.h>

#include "base/lock.h"
#include "relay/circuit.h"

/**
 * The connecting end has nothing more to send, and freed its end. process->lock held.
 *
 * @writes: into our memory, ever
 */
MESH_HOLDS(process)
void mesh_circuit_shut(struct mesh_circuit *circuit, uint32_t writes);

/**
 * Reports to both ends that the circuit is broken, and logs it. process->lock held.
 *
 * @lost: the side that is
 * @error: of the operation that failed, a negative errno, for both ends; 0: none has
 * @why: what happened there, for the log
 */
MESH_HOLDS(process)
void mesh_circuit_break(struct mesh_circuit *circuit, const struct mesh_circuit_side *lost,
			int error, const char *why);

/** True if a circuit has led to the listener with @cookie, whose process has ended just now. */
MESH_HOLDS(process)
bool mesh_circuits_target_is_over(const struct mesh_relay *relay, uint64_t cookie);

/**
 * The function of the timer of an open circuit: ends what is broken, and frees the circuit when
 * nothing of it is in flight.
 */
MESH_HOLDS(process)
void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms);

#endif
