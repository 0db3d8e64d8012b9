/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - finds the mesh that this node belongs to: asks from neighbour to neighbour. */
#ifndef MESH_FI_UTILS_TOPO_ASK_H
#define MESH_FI_UTILS_TOPO_ASK_H

#include <stdbool.h>

#include "topo/map.h"

/**
 * Asks the neighbours, and those behind them, for up to 5 s, and makes the map of all nodes that
 * have answered. What has not answered is reported on standard error. This node is the map's first.
 *
 * @with_rates: also what its NICs move meanwhile, for a second at least
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno (reported).
 */
int topo_ask(struct topo_map *map, bool with_rates);

#endif
