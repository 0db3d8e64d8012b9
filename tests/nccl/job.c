/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - making communicators and waiting for them. */
#include <errno.h>
#include <stdio.h>

#include <tests/driver/clock.h>

#include "job.h"

int job_say(const struct job *job, const char *call, ncclResult_t result)
{
	if (result == ncclSuccess)
		return 0;
	fprintf(stderr, "nccl_collectives: rank %d: %s: %s\n", job->ranks.rank, call,
		job->api.ncclGetErrorString(result));
	return -EIO;
}

int job_communicator(struct job *job, ncclComm_t *comm)
{
	ncclUniqueId id = {{0}};
	int error = 0;

	if (!job->ranks.rank)
		error = job_say(job, "ncclGetUniqueId", job->api.ncclGetUniqueId(&id));
	if (!error)
		error = ranks_broadcast(&job->ranks, &id, sizeof(id));
	if (error)
		return error;
	return job_say(job, "ncclCommInitRank",
		       job->api.ncclCommInitRank(comm, job->ranks.world, id, job->ranks.rank));
}

int job_wait(const struct job *job, ncclComm_t comm, void *stream)
{
	uint64_t begin_ns = now_ns(), deadline_ns = begin_ns + job->timeout_s * NS_PER_S;
	ncclResult_t asynchronous = ncclSuccess;
	int done;

	for (;;) {
		done = gpu_stream_done(&job->gpu, stream);
		if (done)
			return done < 0 ? done : 0;
		if (job_say(job, "ncclCommGetAsyncError",
			    job->api.ncclCommGetAsyncError(comm, &asynchronous)) ||
		    job_say(job, "asynchronous error", asynchronous))
			return -EIO;
		if (now_ns() > deadline_ns) {
			fprintf(stderr, "nccl_collectives: rank %d: no end after %u s\n",
				job->ranks.rank, job->timeout_s);
			return -ETIMEDOUT;
		}
		poll_pause(begin_ns);
	}
}
