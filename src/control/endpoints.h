/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.h - what follows when the endpoint of a NIC was closed, as the fence of one link. */
#ifndef MESH_CONTROL_ENDPOINTS_H
#define MESH_CONTROL_ENDPOINTS_H

#include "base/lock.h"
#include "control/process.h"

/**
 * Loses the other links over endpoints that were closed: they come back with the new endpoints'
 * names. To be called after each event; process->lock held.
 */
MESH_HOLDS(process)
void mesh_endpoints_check(struct mesh_process *process);

#endif
