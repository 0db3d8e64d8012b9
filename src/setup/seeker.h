/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeker.h - further and better paths for comms that exist.
 *
 * A cable that is missing at init is a NIC without carrier at both of its ends, so neither process
 * uses it. When it joins, each process sends its NICs to its peers (NICS), and the sending end of
 * each comm tries the links that this makes possible. All with process->lock held.
 */
#ifndef MESH_SETUP_SEEKER_H
#define MESH_SETUP_SEEKER_H

#include "base/lock.h"
#include "control/peer.h"
#include "nic/path_choice.h"
#include "transport/comm.h"
#include "wire/handle.h"

/**
 * The comm, which sends to the listener of @handle, may get paths over these links and routes, if
 * they are of a better tier than what it has, or of the same. Without a path (DRAINED) it tries
 * all, also what is far, a reserve, or contradicted by neighbours.
 */
MESH_HOLDS(process)
void mesh_late_links_want(struct mesh_comm *comm, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice);

/** Tries links, and looks for routes, if NICs or comms have changed since the last call. */
MESH_HOLDS(process)
void mesh_seekers_tick(struct mesh_process *process);

/** Our NIC of @domain has a carrier: paths that were over it are looked for soon. */
MESH_HOLDS(process)
void mesh_seekers_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** Looks no longer, at shutdown. */
MESH_HOLDS(process)
void mesh_seekers_close(struct mesh_process *process);

#endif
