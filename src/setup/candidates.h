/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.h - which NICs of two nodes a connection tries, and in which order. */
#ifndef MESH_SETUP_CANDIDATES_H
#define MESH_SETUP_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

struct mesh_process;

/**
 * Finds the candidates for a connection to the listener of @handle: between the NICs that each node
 * would choose now. If none of them is direct, those with reserves follow: of the management
 * network, if that was all there was at init or the setting allows it, of addresses that are gone,
 * and NICs without RDMA where the other end is no reserve. A guest has none: it goes over relays.
 *
 * The likely ones come first, by what neighbours have answered (nic/path_choice.h), unless the
 * handle has no node id.
 *
 * @dev: NCCL's device on this side
 * @handle: gets the NICs of its node that have answered, if it had no room for all of them
 */
MESH_HOLDS(process)
void mesh_candidates_find(struct mesh_process *process, int dev, struct mesh_handle *handle,
			  struct mesh_path_choice *choice);

/** Adds the NICs that have answered to a handle that had no room for all. True if it got one. */
MESH_HOLDS(process)
bool mesh_candidates_learn(struct mesh_process *process, struct mesh_handle *handle);

/**
 * True while answers of neighbours may still come that decide where the node of @handle is: if some
 * candidates are guesses, or if there are none and the handle had no room for all NICs. For the
 * first 0.1 s of a round of questions, and for 0.3 s while the node has answered on none of our
 * NICs.
 *
 * @begins: the first call for a connection: asks, unless that was done for this node
 * @since_ms: when the connection began; it waits for 0.3 s at most, however many others ask
 */
MESH_HOLDS(process)
bool mesh_candidates_wait(struct mesh_process *process, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice, bool begins, uint64_t since_ms,
			  uint64_t now_ms);

#endif
