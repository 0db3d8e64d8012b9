/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.h - which NICs of two nodes a connection tries, and those that stand in for others. */
#ifndef MESH_SETUP_CANDIDATES_H
#define MESH_SETUP_CANDIDATES_H

#include "base/lock.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

struct mesh_nic_table;
struct mesh_process;

/**
 * Finds the candidates for a connection to the listener of @handle: between the NICs that each node
 * would choose now. If none of them is direct, those with reserves follow: of the management
 * network, if that was all there was at init or the setting allows it, of addresses that are gone,
 * and NICs without RDMA where the other end is no reserve. A guest has none: it goes over relays.
 *
 * @dev: NCCL's device on this side
 */
MESH_HOLDS(process)
void mesh_candidates_find(struct mesh_process *process, int dev, const struct mesh_handle *handle,
			  struct mesh_path_choice *choice);

/**
 * Puts the paths over our drained NICs behind the others, whatever their class, but before those
 * that neighbours contradict. Else they keep their order.
 */
MESH_HOLDS(process)
void mesh_candidates_drained_last(const struct mesh_process *process,
				  struct mesh_path_choice *choice);

/**
 * Adds NICs behind NCCL's devices, as reserves, that carry data only between nodes that no other
 * NICs connect: those without RDMA beside others that have it, and, if NCCL_MESH_ROUTED says so,
 * those of the management network. No other thread runs yet. Their memory is never freed, as that
 * of the table.
 */
void mesh_spares_add(struct mesh_process *process);

/**
 * For the error of two nodes without a path: which NICs the setting would add. Empty if it is set,
 * or if there are none.
 *
 * @text: @size bytes; returned
 */
const char *mesh_spares_hint(const struct mesh_process *process, const struct mesh_nic_table *table,
			     char *text, size_t size);

#endif
