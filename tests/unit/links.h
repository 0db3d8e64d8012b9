/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - links that are simulated, for tests of the pace. One simulation at a time. */
#ifndef MESH_TESTS_LINKS_H
#define MESH_TESTS_LINKS_H

#include "fabric/flow.h"

#include "unit.h"

#define MS 1000000ull
#define LINKS_MAX 4
#define LINK_QUEUE_MAX 4096
#define GBIT 125000ull /* bytes in a millisecond */

/* A link delivers bytes in order, at its rate, and completes them @delay_ns later. */
struct link {
	struct mesh_pace pace;
	uint64_t rate; /* bytes in a millisecond */
	uint64_t delay_ns;
	struct {
		uint64_t bytes, posted_ns, sent_ns;
	} queue[LINK_QUEUE_MAX];
	unsigned int first, end;
	uint64_t free_ns; /* when the last byte given to it has left */
	uint64_t carried; /* bytes */
};

struct links {
	struct link links[LINKS_MAX];
	const struct mesh_pace *paces[LINKS_MAX];
	int num;
	uint64_t now_ns;
	uint32_t rotation;
};

extern struct links mesh;

/* What the processor's cache bounds, and what it does not. */
extern const struct mesh_pace_bounds links_tcp, links_rdma;

/** Makes @num links of these rates, each with a latency of 50 us and the window of tcp. */
void links_make(int num, const uint64_t *rates);

/** Gives @bytes to the link. */
void link_post(struct link *link, uint64_t bytes);

/** A link that changes its rate with bytes in its queue sends them at the new rate. */
void link_rate_change(struct link *link, uint64_t rate);

/** Time goes on until the next completion. */
void links_wait_completion(void);

/**
 * Sends @total bytes in segments, at most @ahead of them not complete, as the sender does. Returns
 * the milliseconds that it took.
 */
double links_stream(uint64_t total, uint64_t segment, uint64_t ahead);

/** Fails the test unless such a stream gets @share of what all links together would carry. */
void links_reach(double share, uint64_t total, uint64_t segment, uint64_t ahead);

#endif
