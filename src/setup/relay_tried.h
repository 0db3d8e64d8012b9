/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_tried.h - which relays a search has asked, and when they may be asked again: those that
 * have refused, or have not answered, give the others their turn. All with process->lock held.
 */
#ifndef MESH_SETUP_RELAY_TRIED_H
#define MESH_SETUP_RELAY_TRIED_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "wire/frame.h"

struct mesh_next;
struct mesh_route;

/* Processes that are remembered. */
#define MESH_RELAYS_TRIED 64

/* A process that may relay for us, over one of our links to it. */
struct mesh_relay_tried {
	uint64_t cookie; /* its process id */
	struct mesh_addr address;
	uint64_t node_id;
	uint64_t not_before_ms; /* no process of that node is asked sooner */
	enum mesh_refusal refusal;
	char node[MESH_NODE_NAME_MAX];
};

struct mesh_relays_tried {
	struct mesh_relay_tried all[MESH_RELAYS_TRIED];
	int num; /* 0: no neighbour runs a process that may relay */
};

/** What is remembered of a process on this link; a new entry replaces the one to be asked first. */
struct mesh_relay_tried *mesh_relay_tried_get(struct mesh_relays_tried *tried,
					      const struct mesh_next *next);

/**
 * When a process of the route's first relay may be asked again, of all that have refused, in
 * milliseconds of mesh_clock_ms(); 0: none has.
 */
uint64_t mesh_relays_refused_ms(const struct mesh_relays_tried *tried,
				const struct mesh_route *route);

/**
 * The one of these that was asked least recently, without those in @unusable (bit N: nexts[N]).
 * Returns its index; -1: none is left.
 *
 * @drained: also those over a drained NIC, which come last; else only if there is no other
 */
int mesh_relays_least_recent(struct mesh_relays_tried *tried, const struct mesh_next *nexts,
			     int num, uint32_t unusable, bool drained);

#endif
