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

/** True if no operation of ours that a resumed comm waits for is in flight on a lost path. */
MESH_HOLDS(process)
bool mesh_path_is_quiet(const struct mesh_path *path);

/** True if something may still arrive over a lost path of a comm that goes on. */
MESH_HOLDS(process)
bool mesh_path_is_open(const struct mesh_path *path);

/** The lost path's peer has stopped and was fenced: the path is down. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_path_fenced(struct mesh_path *path);

/**
 * The peer has stopped the path: gives up its link, and fences it. On verbs that takes a while: it
 * is down after a later call, which a question about it makes. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_path_fence(struct mesh_path *path);

/**
 * The sending end has given up a path through relays. The path is down once its last relay has
 * reported, which may be now; if that takes too long, a later call fences it. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_path_given_up(struct mesh_path *path);

/** The last relay of a receiving comm's path has no write in flight, and posts none. */
MESH_HOLDS(process)
void mesh_path_drained(struct mesh_path *path);

/** Sends again what a lost path may have dropped, but for large messages. comm->lock held. */
MESH_HOLDS(comm)
void mesh_send_repeat(struct mesh_comm *comm);

/**
 * Loses the links of suspect paths, and asks receivers about messages in doubt. To be called after
 * each event; does nothing unless mesh_comm_recover_soon() was called.
 */
MESH_HOLDS(process)
void mesh_comms_recover(struct mesh_process *process);

/** HAVE for a sending comm: what has not arrived is sent again. */
MESH_HOLDS(process)
void mesh_have_came(struct mesh_comm *comm, const struct mesh_frame_have *have);

#endif
