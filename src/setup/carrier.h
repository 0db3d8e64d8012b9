/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.h - loses the links of NICs without carrier, where comms go on over other paths. */
#ifndef MESH_SETUP_CARRIER_H
#define MESH_SETUP_CARRIER_H

#include "base/lock.h"
#include "control/process.h"

/**
 * Looks at each NIC that has a domain. To be called when the kernel reports that a link changed: a
 * cable that is pulled is known at once, and not only when nothing has been heard for long. Links
 * whose comms have no other path are left alone: the cable may come back. process->lock held.
 */
MESH_HOLDS(process)
void mesh_carriers_check(struct mesh_process *process);

#endif
