/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuit_end.h - what a comm does when a circuit that one of its paths leads through breaks, or
 * when a relay of it is stopped.
 *
 * The kernel of a stopped relay answers, so its link looks alive. While a comm waits, its ends ask
 * the relays of its paths whether they run, and these ask the next ones (mesh_relay_ask()). The
 * peer itself may be stopped as long as it likes: nobody asks it.
 */
#ifndef MESH_TRANSPORT_CIRCUIT_END_H
#define MESH_TRANSPORT_CIRCUIT_END_H

#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"
#include "transport/path.h"
#include "wire/frame.h"

/** CIRCUIT came over @peer for a path that ends here. process->lock held. */
MESH_HOLDS(process)
void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/**
 * Leaves a path through relays that is up, because the comm has a better one: the relays learn that
 * and the other end. process->lock held; takes domain->lock and comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_leave(struct mesh_path *path);

/** RESUME for a sending comm: leaves those of the paths that lead through relays. */
MESH_HOLDS(process)
void mesh_paths_left(struct mesh_comm *comm, const struct mesh_frame_resume *resume);

/**
 * Asks the relay of each path, and loses the link to one that does not answer. To be called a few
 * times a second while the comm waits for its peer. process->lock held.
 */
MESH_HOLDS(process)
void mesh_relays_look(struct mesh_comm *comm, uint64_t now_ms);

#endif
