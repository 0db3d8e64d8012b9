/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - starts and ends what runs between the first listen or connect and the last close. */
#ifndef MESH_SETUP_START_H
#define MESH_SETUP_START_H

#include "base/lock.h"
#include "control/process.h"

/**
 * Starts the engine and the opening of the domains, and listens on the control port, once. Does not
 * wait for the domains: mesh_openings_result(). process->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
MESH_HOLDS(process)
int mesh_setup_start(struct mesh_process *process);

/**
 * If no domain could be opened, tries all of them again: file descriptors may be free by now. Each
 * listen calls it, because the result may change. process->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
MESH_HOLDS(process)
int mesh_setup_retry(struct mesh_process *process);

/** Ends the engine and closes the domains, once nothing uses them. No lock held. */
void mesh_setup_stop(struct mesh_process *process);

#endif
