/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.h - a comm goes on over its other paths when one is lost: docs/protocol/recovery.md.
 *
 * All with process->lock held, and no comm's but where it is said.
 */
#ifndef MESH_TRANSPORT_RECOVERY_H
#define MESH_TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/** True if the comm goes on when this path is lost: over other paths, or when one is back. */
MESH_HOLDS(process)
bool mesh_path_is_resumed(const struct mesh_path *path);

/** True if it has no other path then, and waits. */
MESH_HOLDS(process)
bool mesh_path_is_waited_for(const struct mesh_path *path);

/**
 * The path's peer is lost, and nothing that we post reaches it: the comm goes on over its other
 * paths, waits for one, or ends if it cannot. domain->lock held as well.
 */
MESH_HOLDS(process)
MESH_HOLDS(domain)
void mesh_path_lost(struct mesh_path *path);

/** Sends again what a lost path may have dropped, but for large messages. comm->lock held. */
MESH_HOLDS(comm)
void mesh_send_repeat(struct mesh_comm *comm);

/**
 * Informs the other end which lives are over here; a sending end asks about messages in doubt.
 * Takes comm->lock.
 */
MESH_HOLDS(process)
void mesh_resume_send(struct mesh_comm *comm);

/**
 * Loses the links of suspect paths, and sends RESUME where it is due. To be called after
 * each event; does nothing unless mesh_comm_recover_soon() was called.
 */
MESH_HOLDS(process)
void mesh_comms_recover(struct mesh_process *process);

/** HAVE for a sending comm: what has not arrived is sent again. */
MESH_HOLDS(process)
void mesh_have_came(struct mesh_comm *comm, const struct mesh_frame_have *have);

/** CIRCUIT came over @peer for a path that ends here. */
MESH_HOLDS(process)
void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/**
 * Leaves a path through relays that is up, because the comm has a better one: the relays learn that
 * and the other end. Takes domain->lock and comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_leave(struct mesh_path *path);

/** RESUME for a sending comm: leaves those of the paths that lead through relays. */
MESH_HOLDS(process)
void mesh_paths_left(struct mesh_comm *comm, const struct mesh_frame_resume *resume);

#endif
