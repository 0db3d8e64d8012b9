/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour_hints.h - what neighbours have answered, for connections: an order, and words. */
#ifndef MESH_SETUP_NEIGHBOUR_HINTS_H
#define MESH_SETUP_NEIGHBOUR_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "neighbours/neighbours.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

struct mesh_process;

/* Room for the texts below. */
#define MESH_NEIGHBOUR_HINT_MAX MESH_NEIGHBOURS_WORDS_MAX

/**
 * Asks the neighbours, if some candidates are guesses, or if there are none and the handle had no
 * room for all NICs: unless the node of @handle has answered on some NIC of ours. Where it has not
 * answered in the same round, it is not: so it is on most NICs.
 *
 * Returns true if it is worth waiting: call mesh_neighbour_hints_wait() until that is over.
 */
MESH_HOLDS(process)
bool mesh_neighbour_hints_ask(struct mesh_process *process, const struct mesh_handle *handle,
			      const struct mesh_path_choice *choice);

/**
 * True while answers may still come that decide where that node is: in the first 0.1 s of a round,
 * until each NIC has heard it; for 0.3 s while none has.
 *
 * @since_ms: when the connection began; it waits for 0.3 s at most, however many others ask
 */
MESH_HOLDS(process)
bool mesh_neighbour_hints_wait(struct mesh_process *process, const struct mesh_handle *handle,
			       const struct mesh_path_choice *choice, uint64_t since_ms,
			       uint64_t now_ms);

/**
 * Adds the NICs of the node of @handle that have answered, if the handle had no room for all of
 * them.
 */
MESH_HOLDS(process)
void mesh_neighbour_hints_learn(struct mesh_process *process, struct mesh_handle *handle);

/**
 * Looks for the node of @handle in the whole mesh: no NIC of ours has a link to it. Returns true
 * while it looks: for a second at most.
 *
 * @asked: false at first
 */
MESH_HOLDS(process)
bool mesh_neighbour_hints_route_wait(struct mesh_process *process, const struct mesh_handle *handle,
				     bool *asked);

/**
 * Writes over which nodes the node of @handle is reached into @text, of @size bytes: "The cables
 * lead there over node b, and none there relays for us (NCCL_MESH_RELAY)", or "" if it was not
 * found. Returns @text.
 */
MESH_HOLDS(process)
const char *mesh_neighbour_hints_route_text(struct mesh_process *process,
					    const struct mesh_handle *handle, char *text,
					    size_t size);

/** Puts the likely candidates first (nic/path_choice.h); those over drained NICs stay the last. */
MESH_HOLDS(process)
void mesh_neighbour_hints_order(struct mesh_process *process, const struct mesh_handle *handle,
				struct mesh_path_choice *choice);

/**
 * Writes what is at the other ends of our NICs into @text, of @size bytes: "Neighbours: ab leads
 * to node c (ca); ac has no answer", or "" if no question was asked. Returns @text.
 */
MESH_HOLDS(process)
const char *mesh_neighbour_hints_text(struct mesh_process *process, char *text, size_t size);

#endif
