/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - one rank's state, and what all tests do with a communicator. */
#ifndef COLLECTIVES_JOB_H
#define COLLECTIVES_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "gpu.h"
#include "ranks.h"

struct job {
	struct api api;
	struct gpu gpu;
	struct ranks ranks;
	size_t min_bytes, max_bytes;
	int iterations;
	int repeats;		/* communicators that are made one after another */
	unsigned int timeout_s; /* for one operation */
	unsigned int bound_s;	/* from a rank's death to the others' error, and for an abort */
	int victim;		/* the rank that dies */
	bool idle_gpu;		/* kernels do not run: only setting up can be tested */
};

/** Says on stderr that an NCCL call failed. Returns 0 for ncclSuccess, else -EIO. */
int job_say(const struct job *job, const char *call, ncclResult_t result);

/** A new communicator of all ranks; collective. Returns 0 or a negative errno. */
int job_communicator(struct job *job, ncclComm_t *comm);

/**
 * Waits until @stream is done, watching @comm for errors of the network.
 *
 * Returns 0, -EIO after an error, -ETIMEDOUT; says which.
 */
int job_wait(const struct job *job, ncclComm_t comm, void *stream);

/** True if rank @job is the one that prints. */
static inline bool job_prints(const struct job *job)
{
	return job->ranks.rank == 0;
}

#endif
