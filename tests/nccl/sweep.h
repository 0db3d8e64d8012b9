/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - operations over sizes: every value checked, then timed. */
#ifndef COLLECTIVES_SWEEP_H
#define COLLECTIVES_SWEEP_H

#include "operations.h"

/* What a sweep works with. */
struct sweep {
	struct job *job;
	ncclComm_t comm;
	void *stream;
	uint32_t *host; /* max_bytes and a little more */
	void *send, *receive;
	bool owned; /* send and receive are released by sweep_close() */
};

/** Takes memory for messages of up to job->max_bytes. Returns 0 or a negative errno. */
int sweep_open(struct sweep *sweep, struct job *job, ncclComm_t comm);

void sweep_close(struct sweep *sweep);

/** Bytes of each of the two buffers of the GPU. */
size_t sweep_buffer_bytes(const struct job *job);

/** Runs one call once. Returns the number of wrong elements here, or a negative errno. */
long sweep_check(struct sweep *sweep, const struct call *call);

/**
 * Runs one operation over all sizes and prints the table; collective. For pairs, every ordered
 * pair of ranks. Returns 0, -EBADMSG if a value was wrong anywhere, or another negative errno.
 */
int sweep_operation(struct sweep *sweep, const struct operation *operation);

/** All operations. */
int sweep_all(struct sweep *sweep);

#endif
