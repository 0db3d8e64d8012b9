/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_join.h - NICs that could not be used at init, and can now.
 *
 * Such a NIC gets a number behind NCCL's devices, which stay as they are, a domain and a control
 * listener, and carries paths of the comms that are made from then on.
 */
#ifndef MESH_SETUP_NIC_JOIN_H
#define MESH_SETUP_NIC_JOIN_H

#include "base/lock.h"
#include "control/process.h"

/**
 * Adds the taken NICs of @table that the process does not have yet, and opens those again that it
 * could not open. Skips, in @table, those for which libfabric has no provider. Sets dev_reserves.
 * Called by one thread at a time, without locks; the process has started.
 */
MESH_EXCLUDES(process)
void mesh_nics_join(struct mesh_process *process, struct mesh_nic_table *table);

/** Removes what has joined, after the domains are closed. process->lock held. */
MESH_HOLDS(process)
void mesh_nics_forget(struct mesh_process *process);

#endif
