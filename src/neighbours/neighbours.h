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
#include "neighbours/searching.h"
#include "nic/graph.h"

/* Room for mesh_asking_words(). */
#define MESH_NEIGHBOURS_WORDS_MAX 400

struct mesh_neighbours {
	struct mesh_neighbour_self self;
	char said[MESH_NEIGHBOURS_WORDS_MAX]; /* the latest INFO line about what was heard */
	struct mesh_asking asking;	      /* our own questions */
	struct mesh_searching searching;      /* for routes */
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

/** Milliseconds since the first question of this round; UINT64_MAX if no round goes on. */
MESH_HOLDS(process)
uint64_t mesh_neighbours_waited_ms(const struct mesh_neighbours *neighbours, uint64_t now_ms);

/**
 * Looks for routes: asks our neighbours, and from node to node those behind them, for a second at
 * most. A search that goes on is replaced. mesh_neighbours_searches() says when it is over.
 *
 * Returns 0 or a negative errno.
 */
MESH_HOLDS(process)
int mesh_neighbours_search(struct mesh_neighbours *neighbours);

/**
 * True while the latest search goes on, and @target, or another node that was reported, has not
 * answered.
 *
 * @target: 0: true while it goes on, whatever it has found
 */
MESH_HOLDS(process)
bool mesh_neighbours_searches(const struct mesh_neighbours *neighbours, uint64_t target);

/**
 * The routes to a node that searches have found so far (nic/graph.h): inside our site first,
 * then those with RDMA on each hop, then fewest relays. A node relays if a rank of our job, or
 * `fi_mesh serve --relay` for it, runs there. None passes a node of @avoided.
 *
 * Returns their number, or -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_neighbours_routes(const struct mesh_neighbours *neighbours, uint64_t target,
			   int relays_max, const uint64_t *avoided, int num_avoided,
			   struct mesh_route *routes, int routes_max);

/**
 * Writes what our NICs are cabled to, and what is wrong, into @text: "Neighbours: ab is cabled to
 * node c (ca); ac has no answer". "" if there are no NICs. Returns @text.
 */
const char *mesh_asking_words(const struct mesh_asking *asking, char *text, size_t size);

#endif
