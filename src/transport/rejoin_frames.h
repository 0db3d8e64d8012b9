/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejoin_frames.h - JOIN and its answers: both ends of a comm give a path that was lost a new life.
 * All with process->lock held.
 */
#ifndef MESH_TRANSPORT_REJOIN_FRAMES_H
#define MESH_TRANSPORT_REJOIN_FRAMES_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/**
 * Asks over @peer, a new peer of the path's link, for the path of a sending comm, unless that is
 * done, or its last operations have not ended. A receiving comm only asks whether it lives.
 */
MESH_HOLDS(process)
void mesh_join_send(struct mesh_path *path, struct mesh_peer *peer);

/**
 * Gives a sending comm that NCCL uses a path that it never had, over @peer, and asks for it. Does
 * nothing if that is not possible now.
 */
MESH_HOLDS(process)
void mesh_join_late(struct mesh_comm *comm, struct mesh_peer *peer);

/** JOIN came: the path of a receiving comm is up again, or the frame is refused. */
MESH_HOLDS(process)
void mesh_rejoin_asked(struct mesh_peer *peer, const struct mesh_frame *frame);

/** ACCEPT or REFUSE came. False if it does not answer a JOIN. */
MESH_HOLDS(process)
bool mesh_rejoin_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept);
MESH_HOLDS(process)
bool mesh_rejoin_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse);

#endif
