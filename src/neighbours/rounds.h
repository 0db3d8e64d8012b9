/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h - asks the neighbours (asking.h) in an engine. */
#ifndef MESH_NEIGHBOURS_ROUNDS_H
#define MESH_NEIGHBOURS_ROUNDS_H

#include "base/lock.h"
#include "control/engine.h"
#include "neighbours/asking.h"

struct mesh_rounds {
	struct mesh_engine *engine;
	struct mesh_asking asking;
	struct mesh_watch watches[MESH_ASKING_SOCKETS]; /* beside asking.fds */
	struct mesh_timer timer;
	/* Called after answers have come and after questions were due; NULL is allowed. */
	void (*stepped)(struct mesh_rounds *rounds, uint64_t now_ms);
};

/** @self: must stay as long as @rounds is used */
void mesh_rounds_init(struct mesh_rounds *rounds, struct mesh_engine *engine,
		      const struct mesh_neighbour_self *self);

/** Asks on all NICs; a round that goes on is extended. */
MESH_HOLDS(process)
void mesh_rounds_ask(struct mesh_rounds *rounds);

/** The same for a node that may be behind any of them: mesh_asking_seek(). */
MESH_HOLDS(process)
void mesh_rounds_seek(struct mesh_rounds *rounds, uint64_t node_id);

/** Closes the sockets and frees what was heard. */
MESH_HOLDS(process)
void mesh_rounds_finish(struct mesh_rounds *rounds);

#endif
