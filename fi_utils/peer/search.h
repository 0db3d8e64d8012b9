/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - finds the mesh that this node belongs to, by asking from node to node. */
#ifndef MESH_FI_UTILS_PEER_SEARCH_H
#define MESH_FI_UTILS_PEER_SEARCH_H

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

#endif
