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
 * it only if the comm has no other path.
 */
MESH_HOLDS(process)
void mesh_rejoin_want(struct mesh_path *path);

/** The NIC has a carrier: its links that were lost are tried at once. */
MESH_HOLDS(process)
void mesh_rejoins_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** True for a HELLO of a process that had a path to this one, and names this one. */
MESH_HOLDS(process)
bool mesh_rejoin_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/** A peer is up: a lost link may be back with it. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_rejoin_peer_up(struct mesh_peer *peer);

/** JOIN came: the path of a receiving comm is up again, or the frame is refused. */
MESH_HOLDS(process)
void mesh_rejoin_asked(struct mesh_peer *peer, const struct mesh_frame *frame);

/** ACCEPT or REFUSE came. False if it does not answer a JOIN. */
MESH_HOLDS(process)
bool mesh_rejoin_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept);
MESH_HOLDS(process)
bool mesh_rejoin_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse);

/** Forgets all links, at shutdown. */
MESH_HOLDS(process)
void mesh_rejoins_close(struct mesh_process *process);

#endif
