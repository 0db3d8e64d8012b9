/* SPDX-License-Identifier: Apache-2.0 */
/* relay_try.h - finds a route to a node without a common link, and dials its first relay. */
#ifndef MESH_SETUP_RELAY_TRY_H
#define MESH_SETUP_RELAY_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "neighbours/neighbours.h"
#include "nic/addr.h"
#include "relay/relay.h"
#include "wire/frame.h"
#include "wire/handle.h"

/* The mesh is searched again, while no route leads there, and after a carrier has come. */
#define MESH_SEARCH_AGAIN_MS 500

/* Nodes that are remembered. */
#define MESH_RELAYS_TRIED 64

/* A node of which a process may relay for us. */
struct mesh_relay_tried {
	uint64_t node_id;
	uint64_t not_before_ms; /* no process of it is asked sooner */
	uint32_t turn;		/* counts refusals: its processes and links take turns */
	enum mesh_refusal refusal;
	char node[MESH_NODE_NAME_MAX];
};

/* Which were asked: those that have refused, or have not answered, give the others their turn. */
struct mesh_relays_tried {
	struct mesh_relay_tried all[MESH_RELAYS_TRIED];
	int num; /* 0: no neighbour runs a process that may relay */
};

struct mesh_path;

/* Routes that go before what a comm has. */
enum mesh_better {
	MESH_BETTER_NONE,
	MESH_BETTER_RDMA,    /* those with RDMA on each hop, inside the site */
	MESH_BETTER_SHORTER, /* of the kind of its own, over fewer relays */
	MESH_BETTER_ANY,
};

/* What a comm goes on over: a route is wanted that is better, or else beside its own routes. */
struct mesh_beside {
	bool goes_on;		 /* else it has no path, and all routes fit */
	enum mesh_better better; /* NONE, RDMA or ANY; shorter ones always are */
	/* Node ids: the relays of its routes, of which none is used twice, then the lost ones. */
	uint64_t relays[MESH_PATHS_MAX * (MESH_RELAYS_MAX + 1)];
	int num; /* of the former; 0: none of its routes is to be replaced */
	/*
	 * Relays that it has lost a moment ago: other routes come first, because what nodes answer
	 * may be older than the loss.
	 */
	int num_lost;
	int longest; /* relays of a route; 0: it has none */
	bool leaves; /* one of them is over another site */
	bool rdma;   /* one has RDMA on each hop */
};

/* process->lock covers it. */
struct mesh_relay_try {
	struct mesh_process *process;
	const struct mesh_handle *handle; /* of the listener at the other end; the owner's */
	/* On each hop of a route: what was cut for RDMA may have its flags in place (data.h). */
	bool rdma_only;
	bool asked; /* the mesh was searched for it */
	struct mesh_beside beside;
	enum mesh_better better; /* what is tried now: it need not be beside its own routes */
	/* No route is beside those, or better: mesh_relay_try_again() begins another search. */
	bool vain;
	uint64_t found_ms; /* since when the mesh is known, and its routes are used; 0: it is not */
	/* Of the first relay of this route; at rest: one is looked for. The owner may end it. */
	struct mesh_dial dial;
	struct mesh_next next;
	struct mesh_route route;
	uint64_t open_ms; /* when the latest OPEN was sent; 0: none was */
	struct mesh_relays_tried tried;
};

/**
 * Makes one, if relays may be used. It looks for nothing yet.
 *
 * @handle: stays the caller's, for as long as the result lives
 *
 * Returns 0; -ENETUNREACH if there are no relays for this job; -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_relay_try_open(struct mesh_process *process, const struct mesh_handle *handle,
			struct mesh_relay_try **relay);

/** Ends the dial, and frees it. NULL is ignored. */
MESH_HOLDS(process)
void mesh_relay_try_close(struct mesh_relay_try *relay);

/** Forgets what was found, but not who was asked: the others have their turn in the next search. */
MESH_HOLDS(process)
void mesh_relay_try_again(struct mesh_relay_try *relay);

/** Looks for a relay, and connects to it. True when relay->dial is up. */
MESH_HOLDS(process)
bool mesh_relay_try_is_ready(struct mesh_relay_try *relay, uint64_t now_ms);

/** Sends OPEN for @path, which leads through the peer of the dial, along its route. */
MESH_HOLDS(process)
void mesh_relay_try_request(struct mesh_relay_try *relay, struct mesh_path *path, uint64_t now_ms);

/** The relay has refused, or is lost: it is not asked again for a while. */
MESH_HOLDS(process)
void mesh_relay_try_refused(struct mesh_relay_try *relay, enum mesh_refusal refusal);

/* ---- rank_ring.c ----------------------------------------------------------------------------- */

/**
 * This process connects to the node @target over relays. If the two follow each other in NCCL's
 * ring, and another order of the nodes would follow the cables better, one WARN names it: in the
 * process before the ring's first gap, so once in a job, or once in each process of that node that
 * connects to the next one.
 *
 * It looks at what the search for routes has found, and sends nothing. If the ranks of all nodes
 * are not known, it logs nothing.
 */
MESH_HOLDS(process)
void mesh_rank_ring_judge(struct mesh_process *process, uint64_t target);

#endif
