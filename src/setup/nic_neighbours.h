/* SPDX-License-Identifier: Apache-2.0 */
/* nic_neighbours.h - the questions and answers of this process's NICs (src/neighbours). */
#ifndef MESH_SETUP_NIC_NEIGHBOURS_H
#define MESH_SETUP_NIC_NEIGHBOURS_H

#include "base/lock.h"

struct mesh_nic;
struct mesh_nic_table;
struct mesh_process;

/**
 * Begins to answer on the mesh NICs, and asks once on each, unless NCCL_MESH_NEIGHBOURS=off. The
 * control port is known and the engine is open.
 */
MESH_HOLDS(process)
void mesh_nic_neighbours_open(struct mesh_process *process);

/**
 * The NICs were read again, or marks of drained ones have changed: asks on those that are new, have
 * a carrier again, or have changed, and neighbours learn the marks with the next answers.
 *
 * @table: with all facts, also of NICs that cannot be used at present
 * @present: as the kernel lists them now, num_present; NULL: all of the table can be used
 */
MESH_HOLDS(process)
void mesh_nic_neighbours_refresh(struct mesh_process *process, const struct mesh_nic_table *table,
				 const struct mesh_nic *present, int num_present);

/** Ends it. The engine's thread has ended; its event queue is open. */
MESH_HOLDS(process)
void mesh_nic_neighbours_close(struct mesh_process *process);

#endif
