/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - finds the mesh that this node belongs to: asks from neighbour to neighbour. */
#ifndef MESH_FI_UTILS_TOPO_ASK_H
#define MESH_FI_UTILS_TOPO_ASK_H

#include "topo/map.h"

struct mesh_explore;
struct peer_self;

/**
 * Asks the neighbours, and those behind them, for up to 5 s, and makes the map of all nodes that
 * have answered. What has not answered is reported on standard error. This node is the map's first.
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno (reported).
 */
int topo_ask(struct topo_map *map);

/**
 * Makes the map of what was found; links are those that both of their ends have reported.
 *
 * @node: this node, which has answered no question itself
 *
 * Returns 0 or a negative errno (reported).
 */
int topo_explored_map(const struct mesh_explore *explore, const struct peer_self *node,
		      struct topo_map *map);

#endif
