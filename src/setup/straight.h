/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.h - ways without a relay for a comm that has lost its relays: a cable, or a route of the
 * kernels, that was not there, or was not wanted, when it was made. All with process->lock held.
 */
#ifndef MESH_SETUP_STRAIGHT_H
#define MESH_SETUP_STRAIGHT_H

#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"
#include "wire/handle.h"

struct mesh_straight;

/**
 * Makes one, which looks for nothing yet.
 *
 * @handle: of the listener at the other end; stays the caller's, for as long as the result lives
 *
 * Returns NULL without memory: the other functions ignore that.
 */
struct mesh_straight *mesh_straight_open(const struct mesh_handle *handle);

/** Releases what it tries, and frees it. */
MESH_HOLDS(process)
void mesh_straight_close(struct mesh_straight *straight);

/** What it has tried last has failed: the next one has its turn. */
MESH_HOLDS(process)
void mesh_straight_next(struct mesh_straight *straight);

/** The comm has a path again: all begins anew when it has none. */
MESH_HOLDS(process)
void mesh_straight_restart(struct mesh_straight *straight);

/**
 * Tries one way after the other for @comm, which has no path, and asks for the first that is up.
 * For 2 s after the first call it tries none, or for 10 s if the lost route had RDMA on each hop:
 * relays go first.
 *
 * Returns the path that waits for the answer to CONNECT now, or NULL.
 */
MESH_HOLDS(process)
struct mesh_path *mesh_straight_look(struct mesh_straight *straight, struct mesh_comm *comm,
				     uint64_t now_ms);

#endif
