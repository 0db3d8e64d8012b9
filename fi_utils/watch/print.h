/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the counters as tables. */
#ifndef MESH_FI_UTILS_WATCH_PRINT_H
#define MESH_FI_UTILS_WATCH_PRINT_H

#include <stdio.h>

#include "watch/sample.h"

/** Tables for people. */
void watch_print(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

#endif
