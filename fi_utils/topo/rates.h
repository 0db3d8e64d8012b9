/* SPDX-License-Identifier: Apache-2.0 */
/* rates.h - what the NICs of this node move now. */
#ifndef MESH_FI_UTILS_TOPO_RATES_H
#define MESH_FI_UTILS_TOPO_RATES_H

#include "topo/map.h"
#include "watch/sample.h"

/** The counters of this node before the measurement; free them with topo_rates_end(). */
struct topo_rates {
	struct watch_sample before;
};

/** Begins. Returns 0 or a negative errno. */
int topo_rates_begin(struct topo_rates *rates);

/**
 * Waits until TOPO_RATES_MS have passed since the begin, and enters the rates of @node's NICs.
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno.
 */
int topo_rates_enter(struct topo_rates *rates, struct topo_map *map, int node);

void topo_rates_end(struct topo_rates *rates);

/* Time in which the rates are measured. */
#define TOPO_RATES_MS 1000

#endif
