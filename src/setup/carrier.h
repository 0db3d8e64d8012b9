/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.h - what follows from a NIC without carrier. */
#ifndef MESH_SETUP_CARRIER_H
#define MESH_SETUP_CARRIER_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/process.h"

/** False only if the kernel says that the NIC is down, has no carrier, or is gone. */
bool mesh_carrier_is_up(const struct mesh_nic *nic);

/**
 * Looks at each NIC that has a domain. To be called when the kernel reports that a link changed: a
 * cable that is pulled is known at once, and not only when nothing has been heard for long. Links
 * whose comms have another path are lost; the others are only watched, because the cable may come
 * back. process->lock held.
 */
MESH_HOLDS(process)
void mesh_carriers_check(struct mesh_process *process);

#endif
