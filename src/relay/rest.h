/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h - when the thread that relays polls, pauses and sleeps. Pure.
 *
 * For a while after something was forwarded it polls, because what comes next then costs no
 * wake-up. After a small message of NCCL that while is long, because somebody waits for each
 * one; after a segment it is as short as a wake-up, because the next segments are on their way
 * while the thread sleeps. Polls that find nothing take half of the time at most. Otherwise it
 * sleeps on the NICs' descriptors. They also wake it for what this process itself sends and
 * receives, which NCCL's threads poll for: after such a wake-up it pauses.
 */
#ifndef MESH_RELAY_REST_H
#define MESH_RELAY_REST_H

#include <stdbool.h>
#include <stdint.h>

/* Times in ns. */
struct mesh_rest {
	uint64_t moved_ns;  /* when something was last forwarded */
	uint64_t until_ns;  /* it polls until then */
	uint64_t turn_ns;   /* of the last call of mesh_rest_polls() */
	uint64_t credit_ns; /* of polls that find nothing */
	bool polls;	    /* the answer of that call */
	bool vain;	    /* a NIC has woken the thread since the last pause */
};

/** What was forwarded. */
enum mesh_rest_moved {
	MESH_REST_NOTHING,
	MESH_REST_SEGMENT, /* or a message or frame about one */
	MESH_REST_MESSAGE, /* a small message of NCCL */
};

void mesh_rest_init(struct mesh_rest *rest, uint64_t now_ns);

/**
 * Called after each poll.
 *
 * @moved: what was forwarded since the last call
 * @bounded: a descriptor ends the sleep. Then polls that find nothing use up a credit, and they are
 *           few after a segment
 *
 * Returns true if the thread is to poll again at once.
 */
bool mesh_rest_polls(struct mesh_rest *rest, uint64_t now_ns, enum mesh_rest_moved moved,
		     bool bounded);

/** How long to pause, in ns, where no descriptor can wake the thread: between 20 us and 1 ms. */
uint64_t mesh_rest_pause_ns(const struct mesh_rest *rest, uint64_t now_ns);

#endif
