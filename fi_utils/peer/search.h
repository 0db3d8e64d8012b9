/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - asks the neighbours of this node, and from node to node the mesh behind them. */
#ifndef MESH_FI_UTILS_PEER_SEARCH_H
#define MESH_FI_UTILS_PEER_SEARCH_H

#include "neighbours/asking.h"
#include "neighbours/searching.h"
#include "peer/self.h"

struct peer_search {
	struct mesh_neighbour_self self;
	struct mesh_asking asking;
	struct mesh_searching searching; /* explore: what was found */
};

/**
 * Searches the whole mesh; takes seconds at most.
 *
 * @search: zeroed; call peer_search_finish() whatever this returns
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno.
 */
int peer_search_run(struct peer_search *search, const struct peer_self *node);

/** Frees what was found. */
void peer_search_finish(struct peer_search *search);

/**
 * Asks, and waits for the answers for half a second at most; less if each NIC has one.
 *
 * @node: this node
 * @self, @asking: receive what was asked, and what was heard; @asking refers to @self. To be freed
 * with mesh_asking_finish() in any case
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno if no socket can be opened.
 */
int peer_neighbours_ask(const struct peer_self *node, struct mesh_neighbour_self *self,
			struct mesh_asking *asking);

#endif
