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
 * @source: where it came from, for messages; its last part without ".json" names the node of a
 * report that does not name itself
 *
 * Returns 0; -EINVAL (reported) for anything that is no such document; -ENOMEM. After an error @map
 * holds a part of it and is good for topo_map_free() only.
 */
int topo_document_read(struct topo_map *map, const char *text, size_t size, const char *source);

#endif
