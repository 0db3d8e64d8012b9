/* SPDX-License-Identifier: Apache-2.0 */
/* relays.h - which pairs of a planned mesh need relays, and what the cables leave each pair. */
#ifndef MESH_FI_UTILS_PLAN_RELAYS_H
#define MESH_FI_UTILS_PLAN_RELAYS_H

#include "common/relay_choice.h"

#include "plan/plan.h"

/* Larger meshes are not computed. */
#define PLAN_RELAYS_NODES_MAX 64

/* Two nodes. */
struct plan_pair {
	int from, to; /* from < to */
	/* Of one without relays if the two have a cable. */
	struct relay_routes routes;
	/*
	 * Bandwidth of each direction in cables, while all pairs send in both directions and share
	 * fairly: 0.5 is half of what one cable carries.
	 */
	double share;
};

struct plan_relays {
	struct plan_pair *pairs; /* owned; all pairs */
	int num_pairs;
	bool all_reached; /* else some pairs need more relays than a route may have */
};

/**
 * Finds the routes as the plugin does, if each node relays, and shares the cables: the bandwidth of
 * all pairs grows alike until a cable is full, then that of the pairs that do not use it, and so
 * on. A pair with several routes sends equal parts over them.
 *
 * Returns 0; -E2BIG for more than PLAN_RELAYS_NODES_MAX nodes, or more neighbours of one node than
 * the plugin uses NICs; -ENOMEM.
 */
int plan_relays_find(const struct mesh_plan *plan, struct plan_relays *relays);

void plan_relays_free(struct plan_relays *relays);

#endif
