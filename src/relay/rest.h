/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h - when the thread that relays polls, pauses and sleeps. Pure.
 *
 * For a while after something was forwarded it polls, because the next segment then costs no
 * wake-up. Polls that find nothing take half of the time at most. Otherwise it sleeps on the NICs'
 * descriptors. They also wake it for what this process itself sends and receives, which NCCL's
 * threads poll for: after such a wake-up it pauses.
 */
#ifndef MESH_RELAY_REST_H
#define MESH_RELAY_REST_H

#include <stdbool.h>
#include <stdint.h>

/* Times in ns. */
struct mesh_rest {
	uint64_t moved_ns;  /* when something was last forwarded */
	uint64_t turn_ns;   /* of the last call of mesh_rest_polls() */
	uint64_t credit_ns; /* of polls that find nothing */
	bool polls;	    /* the answer of that call */
	bool vain;	    /* a NIC has woken the thread since the last pause */
};

void mesh_rest_init(struct mesh_rest *rest, uint64_t now_ns);

/**
 * Called after each poll.
 *
 * @moved: something was forwarded since the last call
 * @bounded: polls that find nothing use up a credit; else only time since the last movement counts
 *
 * Returns true if the thread is to poll again at once.
 */
bool mesh_rest_polls(struct mesh_rest *rest, uint64_t now_ns, bool moved, bool bounded);

/** How long to pause, in ns, where no descriptor can wake the thread: between 20 us and 1 ms. */
uint64_t mesh_rest_pause_ns(const struct mesh_rest *rest, uint64_t now_ns);

#endif
