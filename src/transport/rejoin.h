/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejoin.h - a path that was lost joins its comms again when its link works again.
 *
 * The process at the sending end connects again, for as long as a comm wants the path. A comm
 * without any path waits for NCCL_MESH_RECOVERY_TIMEOUT. All with process->lock held.
 */
#ifndef MESH_TRANSPORT_REJOIN_H
#define MESH_TRANSPORT_REJOIN_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/**
 * A path is lost: its link is tried until the path is up again. The receiving end of a comm tries
 * it only if the comm has no other path. A link over which no large write arrives again and again,
 * although small messages do, is tried ever more seldom, also for comms without another path.
 */
MESH_HOLDS(process)
void mesh_rejoin_want(struct mesh_path *path);

/**
 * Comms that send to the process @process_id and never had a path over this link may get one, if it
 * is not worse than theirs. It is dialled for as long as one of them may.
 *
 * @way: its listener is not meant
 * @comm: the one that it is for; NULL: any
 */
MESH_HOLDS(process)
void mesh_rejoin_new(struct mesh_process *process, uint64_t process_id, const struct mesh_way *way,
		     struct mesh_comm *comm);

/** The NIC has a carrier: its links that were lost are tried at once. */
MESH_HOLDS(process)
void mesh_rejoins_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** A comm's memory may be registered: links that are up go on at once, in the same order. */
MESH_HOLDS(process)
void mesh_rejoins_go_on(struct mesh_process *process);

/** A peer is up: a lost link may be back with it. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_rejoin_peer_up(struct mesh_peer *peer);

/** Forgets all links, at shutdown. */
MESH_HOLDS(process)
void mesh_rejoins_close(struct mesh_process *process);

#endif
