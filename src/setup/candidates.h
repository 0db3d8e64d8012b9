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
 * Asks the neighbours, if some candidates are guesses, or if there are none and the handle had no
 * room for all NICs: unless the node of @handle has answered on some NIC of ours. Where it has not
 * answered in the same round, it is not: so it is on most NICs.
 *
 * Returns true if it is worth waiting: call mesh_candidates_wait() until that is over.
 */
MESH_HOLDS(process)
bool mesh_candidates_ask(struct mesh_process *process, const struct mesh_handle *handle,
			 const struct mesh_path_choice *choice);

/**
 * True while answers may still come that decide where that node is: in the first 0.1 s of a round,
 * until each NIC has heard it; for 0.3 s while none has.
 *
 * @since_ms: when the connection began; it waits for 0.3 s at most, however many others ask
 */
MESH_HOLDS(process)
bool mesh_candidates_wait(struct mesh_process *process, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice, uint64_t since_ms,
			  uint64_t now_ms);

#endif
