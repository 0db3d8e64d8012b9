/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - a path of a comm gets another life: docs/protocol/recovery.md.
 *
 * The sending end asks for it: over the link that the path had (rejoin.h), or over any way that
 * leads to its peer (src/setup/seeker.h). All with process->lock held, and no comm's.
 */
#ifndef MESH_TRANSPORT_ATTACH_H
#define MESH_TRANSPORT_ATTACH_H

#include <stdbool.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/* ---- the sending end ----------------------------------------------------------------------- */

/**
 * Gives a path to @peer, which is up: the process at the other end, which is asked, or, if @relay,
 * a relay to which OPEN is to be sent.
 *
 * Returns 0; -EAGAIN if the path is not down, operations of its earlier life are in flight, or the
 * comm's memory is still being registered; -EOPNOTSUPP if the peer is not enough for the comm;
 * -ENOSPC, -ENOMEM, or another negative errno of a registration.
 */
MESH_HOLDS(process)
int mesh_attach_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay);

/** True if mesh_attach_late() finds a path for a link, one that the comm has left included. */
MESH_HOLDS(process)
bool mesh_attach_has_room(struct mesh_comm *comm);

/**
 * Gives a comm that NCCL uses a path that it never had: *late. The one before it must be known to
 * both ends, or it is this one. Returns as the above does.
 */
MESH_HOLDS(process)
int mesh_attach_late(struct mesh_comm *comm, struct mesh_peer *peer, bool relay,
		     struct mesh_path **late);

/** Asks the process at the other end, the path's peer, for this life of it. */
MESH_HOLDS(process)
void mesh_attach_request(const struct mesh_path *path);

/** ACCEPT, OPENED or REFUSE came. False if it answers none of our questions. */
MESH_HOLDS(process)
bool mesh_attach_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept);
MESH_HOLDS(process)
bool mesh_attach_opened(struct mesh_peer *peer, const struct mesh_frame_opened *opened);
MESH_HOLDS(process)
bool mesh_attach_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse);

/**
 * A sending comm leaves its paths over relays for those of a better tier that are up, or over fewer
 * relays. What they had in flight is asked for, and sent again if need be, as after a loss. Takes
 * comm->lock.
 */
MESH_HOLDS(process)
void mesh_attach_relays_leave(struct mesh_comm *comm);

/* ---- the receiving end --------------------------------------------------------------------- */

/** Asks over @peer whether the comm of this path, which has no path that is up, lives there. */
MESH_HOLDS(process)
void mesh_attach_ask(const struct mesh_path *path, struct mesh_peer *peer);

/** Answers CONNECT with ACCEPT: the path is as @request has asked for. */
MESH_HOLDS(process)
void mesh_attach_answer(const struct mesh_path *path, struct mesh_peer *peer,
			const struct mesh_frame_connect *request);

/**
 * True for a HELLO of a process that may ask for a path: it has one of our handles, or comms with
 * us, and has lost a link.
 */
MESH_HOLDS(process)
bool mesh_attach_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/** CONNECT came. Answers it, or returns false: a listener is to make a comm, or a part of one. */
MESH_HOLDS(process)
bool mesh_attach_came(struct mesh_peer *peer, const struct mesh_frame_connect *request);

#endif
