/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - the counters as JSON: one object a line. */
#ifndef MESH_FI_UTILS_WATCH_JSON_H
#define MESH_FI_UTILS_WATCH_JSON_H

#include <stdio.h>

#include "watch/sample.h"

/** One line of JSON. Returns 0 or -1 (reported). */
int watch_print_json(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

#endif
