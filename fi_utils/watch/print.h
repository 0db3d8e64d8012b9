/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the counters as tables, JSON and for Prometheus. */
#ifndef MESH_FI_UTILS_WATCH_PRINT_H
#define MESH_FI_UTILS_WATCH_PRINT_H

#include <stdio.h>

#include "watch/sample.h"

/** Tables for people. */
void watch_print(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

/** One line of JSON. Returns 0 or -1 (reported). */
int watch_print_json(FILE *file, const struct watch_sample *now, const struct watch_sample *before);

/** The Prometheus text format, version 0.0.4. */
void watch_print_prometheus(FILE *file, const struct watch_sample *sample);

#endif
