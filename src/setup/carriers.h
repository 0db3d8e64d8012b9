/* SPDX-License-Identifier: Apache-2.0 */
/* carriers.h - what follows from a NIC without carrier. */
#ifndef MESH_SETUP_CARRIERS_H
#define MESH_SETUP_CARRIERS_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/process.h"

/**
 * Looks at each NIC. To be called when the kernel reports that a link changed: a cable that is
 * pulled is known at once, and not only when nothing has been heard for long. Links whose comms
 * have another path are lost; the others are only watched, because the cable may come back.
 * process->lock held.
 */
MESH_HOLDS(process)
void mesh_carriers_check(struct mesh_process *process);

#endif
