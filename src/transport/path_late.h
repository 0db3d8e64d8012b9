/* SPDX-License-Identifier: Apache-2.0 */
/* path_late.h - a path that a comm did not have when NCCL got it. */
#ifndef MESH_TRANSPORT_PATH_LATE_H
#define MESH_TRANSPORT_PATH_LATE_H

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Adds a path to a comm that NCCL uses, through @peer: it joins, and has the comm's registrations.
 * process->lock held; takes domain->lock and comm->lock.
 *
 * Returns 0; -ENOSPC if the comm or the domain has no room; -EOPNOTSUPP if the comm cannot use such
 * a path; or another negative errno.
 */
MESH_HOLDS(process)
int mesh_comm_path_add_late(struct mesh_comm *comm, struct mesh_peer *peer);

#endif
