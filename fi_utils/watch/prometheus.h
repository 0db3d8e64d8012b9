/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.h - the counters in Prometheus' text format. */
#ifndef MESH_FI_UTILS_WATCH_PROMETHEUS_H
#define MESH_FI_UTILS_WATCH_PROMETHEUS_H

#include <stdio.h>

#include "watch/sample.h"

/** The Prometheus text format, version 0.0.4. */
void watch_print_prometheus(FILE *file, const struct watch_sample *sample);

#endif
