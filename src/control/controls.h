/* SPDX-License-Identifier: Apache-2.0 */
/* controls.h - the control listeners: one TCP port, on the mesh NICs' addresses only. */
#ifndef MESH_CONTROL_CONTROLS_H
#define MESH_CONTROL_CONTROLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"

/** Opens and closes the control listeners of all domains. process->lock held. */
MESH_HOLDS(process)
int mesh_controls_open(struct mesh_process *process);
void mesh_controls_close(struct mesh_process *process);

/**
 * Opens the control listener of one more NIC, on the same port as the others; its domain need not
 * be open. process->lock held.
 *
 * Returns 0 or a negative errno: -EADDRINUSE if another process has the port on that address.
 */
MESH_HOLDS(process)
int mesh_control_open(struct mesh_process *process, int dev);

#endif
