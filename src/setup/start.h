/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - starts and ends what runs between the first listen or connect and the last close. */
#ifndef MESH_SETUP_START_H
#define MESH_SETUP_START_H

#include "base/lock.h"
#include "control/process.h"

/** What the engine does, whose owner is the mesh_process: the work of all objects that is due. */
extern const struct mesh_engine_work mesh_setup_work;

/**
 * Starts the engine and listens on the control port, once. Domains are opened when they are needed
 * (openings.h). process->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
MESH_HOLDS(process)
int mesh_setup_start(struct mesh_process *process);

/** Ends the engine and closes the domains, once nothing uses them. No lock held. */
void mesh_setup_stop(struct mesh_process *process);

#endif
