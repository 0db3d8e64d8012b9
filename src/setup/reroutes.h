/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroutes.h - looks for other routes for comms that send and have lost one (transport/attach.h).
 * All with process->lock held.
 */
#ifndef MESH_SETUP_REROUTES_H
#define MESH_SETUP_REROUTES_H

#include "base/lock.h"
#include "control/peer.h"

/** Begins to look for those that have lost a route since the last call. */
MESH_HOLDS(process)
void mesh_reroutes_tick(struct mesh_process *process);

/** Our NIC of @domain has a carrier: paths that were over it are looked for soon. */
MESH_HOLDS(process)
void mesh_reroutes_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** Looks no longer, at shutdown. */
MESH_HOLDS(process)
void mesh_reroutes_close(struct mesh_process *process);

#endif
