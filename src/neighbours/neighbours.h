/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours.h - this process among its neighbours: it asks on each mesh NIC which node is there,
 * and its node answers. Runs in an engine; sends nothing unless a question is to be asked.
 */
#ifndef MESH_NEIGHBOURS_NEIGHBOURS_H
#define MESH_NEIGHBOURS_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/engine.h"
#include "neighbours/answering.h"
#include "neighbours/asking.h"
#include "neighbours/members.h"

struct mesh_neighbours {
	struct mesh_engine *engine;
	struct mesh_neighbour_self self;
	struct mesh_asking asking;
	struct mesh_watch watches[MESH_ASKING_SOCKETS]; /* beside asking.fds */
	struct mesh_timer timer;			/* of asking */
	struct mesh_members members;
	struct mesh_answering answering;
};

/**
 * Begins to answer, alone or as a member of this node's processes. It has no NICs yet.
 *
 * @engine: is open
 * @self: is copied
 *
 * Returns NULL if memory is short.
 */
MESH_HOLDS(process)
struct mesh_neighbours *mesh_neighbours_open(struct mesh_engine *engine,
					     const struct mesh_neighbour_self *self);

/** Ends all of it; NULL is allowed. The engine's event queue is open, its thread has ended. */
MESH_HOLDS(process)
void mesh_neighbours_close(struct mesh_neighbours *neighbours);

/**
 * Sets our NICs, and asks if one of them is new or has changed.
 *
 * @ask: false: only answers for them
 */
MESH_HOLDS(process)
void mesh_neighbours_links_set(struct mesh_neighbours *neighbours,
			       const struct mesh_neighbour_link *links, int num_links, bool ask);

/** Asks on all NICs; a round that goes on is extended. */
MESH_HOLDS(process)
void mesh_neighbours_ask(struct mesh_neighbours *neighbours);

/** What our NICs have heard: one entry for each. Valid until the lock is released. */
MESH_HOLDS(process)
const struct mesh_asked *mesh_neighbours_asked(const struct mesh_neighbours *neighbours,
					       int *num_asked);

/** True while answers to a question of the last 100 ms may still come. */
MESH_HOLDS(process)
bool mesh_neighbours_wait(const struct mesh_neighbours *neighbours, uint64_t now_ms);

#endif
