/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopped.h - a comm leaves a path whose relay is stopped, if another way leads to its peer.
 *
 * The kernel of a stopped relay answers, so its link looks alive. While a comm waits, its ends ask
 * the relays of its paths whether they run (relay/silence.h). A path with one that does not is left
 * as if its circuit had broken: for another path of the comm, or, where there is none, for another
 * route on which a trial has succeeded (src/setup/reroutes.h). Without either the comm waits, as it
 * does for a stopped peer, which nobody asks.
 */
#ifndef MESH_TRANSPORT_STOPPED_H
#define MESH_TRANSPORT_STOPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"

/**
 * Asks the relays of each path, and leaves those that are stopped if another one goes on. To be
 * called a few times a second while the comm waits for its peer. process->lock held.
 *
 * @waited_ms: for so long already
 */
MESH_HOLDS(process)
void mesh_stopped_look(struct mesh_comm *comm, uint64_t waited_ms, uint64_t now_ms);

/**
 * True for a sending comm that waits for a stopped relay, and has no other path: another route is
 * to be tried. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_stopped_wants_route(const struct mesh_comm *comm, uint64_t now_ms);

/** Another route leads to the peer of such a comm: it leaves its paths. process->lock held. */
MESH_HOLDS(process)
void mesh_stopped_leave(struct mesh_comm *comm, uint64_t now_ms);

/**
 * CIRCUIT came over @peer for a path that ends here: handles ANSWER and LEFT, and returns false for
 * other events. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_stopped_event(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
