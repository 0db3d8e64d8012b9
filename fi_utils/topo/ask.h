/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - makes the map of a mesh: from neighbour to neighbour, or from files. */
#ifndef MESH_FI_UTILS_TOPO_ASK_H
#define MESH_FI_UTILS_TOPO_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/map.h"

/* ---- finds the mesh that this node belongs to: asks from neighbour to neighbour -------------- */

/**
 * Asks the neighbours, and those behind them, for up to 5 s, and makes the map of all nodes that
 * have answered. What has not answered is reported on standard error. This node is the map's first.
 *
 * @with_rates: also what its NICs move meanwhile, for a second at least
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno (reported).
 */
int topo_ask(struct topo_map *map, bool with_rates);

/* ---- reads plans and reports of nodes into a map --------------------------------------------- */

/**
 * Reads one document of `fi_mesh plan --json` or `fi_mesh nics --json` into @map.
 *
 * @text: @size bytes, any of them
 * @source: where it came from, for messages; its last part without ".json" is the node's name if
 * the report has none
 *
 * Returns 0; -EINVAL (reported) for anything else; -ENOMEM. After an error @map is incomplete: only
 * topo_map_free() may be called with it.
 */
int topo_document_read(struct topo_map *map, const char *text, size_t size, const char *source);

#endif
