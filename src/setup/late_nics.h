/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_nics.h - NICs that join, here or at a peer, and links that begin to let something through,
 * give comms that exist further paths.
 *
 * A cable that is missing at init is a NIC without carrier at both of its ends, so neither process
 * uses it. When it joins, each process sends its NICs to its peers (NICS), and the sending end of
 * each comm tries the links that this makes possible. All with process->lock held.
 */
#ifndef MESH_SETUP_LATE_NICS_H
#define MESH_SETUP_LATE_NICS_H

#include "base/lock.h"
#include "control/peer.h"
#include "nic/path_choice.h"
#include "transport/comm.h"
#include "wire/handle.h"

/** NICS came. */
MESH_HOLDS(process)
void mesh_late_nics_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

/** An incoming peer has sent HELLO: its process may have new NICs or addresses. */
MESH_HOLDS(process)
void mesh_late_nics_introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello);

/**
 * The comm, which sends to the listener of @handle, may get paths over these links and routes, if
 * they are of a better tier than what it has, or of the same. Without a path (DRAINED) it tries
 * all, also what is far, a reserve, or contradicted by neighbours.
 */
MESH_HOLDS(process)
void mesh_late_links_want(struct mesh_comm *comm, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice);

/** The same over what leads there now. */
MESH_HOLDS(process)
void mesh_late_links_find(struct mesh_comm *comm, const struct mesh_handle *handle);

/** Tries links, if something has changed since the last call. */
MESH_HOLDS(process)
void mesh_late_nics_tick(struct mesh_process *process);

#endif
