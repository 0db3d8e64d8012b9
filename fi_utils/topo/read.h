/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - reads plans and reports of nodes into a map. */
#ifndef MESH_FI_UTILS_TOPO_READ_H
#define MESH_FI_UTILS_TOPO_READ_H

#include <stddef.h>

#include "topo/map.h"

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
