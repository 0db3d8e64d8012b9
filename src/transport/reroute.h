/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroute.h - a path whose circuit is broken gets another one, over any route that leads to its
 * peer: docs/protocol/relaying.md.
 *
 * The sending end looks for the route (src/setup/reroutes.h), while both ends wait (route_wait.h).
 * All with process->lock held, and no comm's.
 */
#ifndef MESH_TRANSPORT_REROUTE_H
#define MESH_TRANSPORT_REROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/* ---- the sending end ----------------------------------------------------------------------- */

/**
 * Gives a path to @relay, which is up: OPEN is to be sent for it. No other path of the comm may
 * wait for an answer to OPEN: an epoch, which this counts, is that of one path.
 *
 * Returns 0; -EAGAIN if the path is not down, operations of its earlier circuit are in flight, or
 * the comm's memory is still being registered; -ENOSPC, -ENOMEM, or another negative errno of a
 * registration.
 */
MESH_HOLDS(process)
int mesh_reroute_begin(struct mesh_path *path, struct mesh_peer *relay);

/**
 * The same without a relay: @peer, which is up, is the process at the other end. CONNECT is to be
 * sent for it. Returns -EOPNOTSUPP as well, if that is not enough for the comm.
 */
MESH_HOLDS(process)
int mesh_reroute_begin_straight(struct mesh_path *path, struct mesh_peer *peer);

/** The path that waits for an answer to OPEN, or to CONNECT, under this id, or NULL. */
MESH_HOLDS(process)
struct mesh_path *mesh_reroute_find(struct mesh_peer *peer, uint32_t id);

/** True while the path waits for such an answer. */
MESH_HOLDS(process)
bool mesh_reroute_is_asked(const struct mesh_path *path);

/**
 * OPENED came for such a path: the comm goes on. Returns false if the circuit does not suffice: it
 * is given back, and the path waits no longer.
 */
MESH_HOLDS(process)
bool mesh_reroute_opened(struct mesh_path *path, const struct mesh_frame_opened *opened);

/** ACCEPT came for such a path: the comm goes on. Returns false if a relay was asked for it. */
MESH_HOLDS(process)
bool mesh_reroute_accepted(struct mesh_path *path, const struct mesh_frame_accept *accept);

/** The path waits no longer for such an answer. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_reroute_end(struct mesh_path *path);

/** REFUSE came for such a path. */
MESH_HOLDS(process)
void mesh_reroute_refused(struct mesh_path *path, enum mesh_refusal refusal);

/* ---- the receiving end --------------------------------------------------------------------- */

/** True for the HELLO of a relay that names the listener of a comm that is here. */
MESH_HOLDS(process)
bool mesh_reroute_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/**
 * A relay, or the sending end itself, has sent CONNECT for a comm. Returns false if none that is
 * whole has its key; else it is answered: with ACCEPT, or with REFUSE, as long as the path's
 * earlier circuit is not fenced, or the comm's memory is not registered.
 */
MESH_HOLDS(process)
bool mesh_reroute_came(struct mesh_peer *peer, const struct mesh_frame_connect *request);

#endif
