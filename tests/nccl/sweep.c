/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - runs operations, checks and times them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tests/driver/clock.h>

#include "sweep.h"

/* Each size is so many times the one before. */
#define SIZE_STEP 4

size_t sweep_buffer_bytes(const struct job *job)
{
	/* Sizes are rounded up to one element for each rank. */
	return job->max_bytes + sizeof(uint32_t) * RANKS_MAX;
}

int sweep_open(struct sweep *sweep, struct job *job, ncclComm_t comm)
{
	size_t bytes = sweep_buffer_bytes(job);

	*sweep = (struct sweep){.job = job, .comm = comm, .owned = true};
	sweep->host = malloc(bytes);
	if (!sweep->host)
		return -ENOMEM;
	if (gpu_allocate(&job->gpu, &sweep->send, bytes) ||
	    gpu_allocate(&job->gpu, &sweep->receive, bytes) ||
	    gpu_stream_create(&job->gpu, &sweep->stream)) {
		sweep_close(sweep);
		return -EIO;
	}
	return 0;
}

void sweep_close(struct sweep *sweep)
{
	const struct gpu *gpu = &sweep->job->gpu;

	if (sweep->stream)
		gpu->stream_destroy(sweep->stream);
	if (sweep->owned && sweep->receive)
		gpu->release(sweep->receive);
	if (sweep->owned && sweep->send)
		gpu->release(sweep->send);
	free(sweep->host);
	*sweep = (struct sweep){.job = sweep->job};
}

static int start(struct sweep *sweep, const struct call *call)
{
	return job_say(sweep->job, call->operation->name,
		       call->operation->start(sweep->job, call, sweep->send, sweep->receive,
					      sweep->comm, sweep->stream));
}

/*
 * Positions are those of the sender's whole buffer, except where every rank gives one part of
 * the result: then each part begins at 0.
 */
static int prepare(struct sweep *sweep, const struct call *call)
{
	size_t elements = operation_elements(sweep->job, call);
	size_t bytes = elements * sizeof(uint32_t);
	int error;

	memset(sweep->host, VALUES_POISON_BYTE, bytes);
	error = gpu_copy(&sweep->job->gpu, sweep->receive, sweep->host, bytes);
	if (error)
		return error;
	values_fill(sweep->host, call->kind, sweep->job->ranks.rank, 0, elements);
	return gpu_copy(&sweep->job->gpu, sweep->send, sweep->host, bytes);
}

long sweep_check(struct sweep *sweep, const struct call *call)
{
	const struct job *job = sweep->job;
	size_t bytes = (size_t)operation_bytes(job, call);
	int error = prepare(sweep, call);

	if (!error)
		error = start(sweep, call);
	if (!error)
		error = job_wait(job, sweep->comm, sweep->stream);
	if (!error)
		error = gpu_copy(&job->gpu, sweep->host, sweep->receive, bytes);
	return error ? error : (long)operation_wrong(job, call, sweep->host);
}

/* The time of one call in seconds; the slowest rank's. */
static int measure(struct sweep *sweep, const struct call *call, double *seconds)
{
	struct job *job = sweep->job;
	double barrier = 0;
	uint64_t begin_ns;
	int i, error = ranks_largest(&job->ranks, &barrier);

	begin_ns = now_ns();
	for (i = 0; i < job->iterations && !error; i++)
		error = start(sweep, call);
	if (!error)
		error = job_wait(job, sweep->comm, sweep->stream);
	if (error)
		return error;
	*seconds = (double)(now_ns() - begin_ns) / 1e9 / job->iterations;
	return ranks_largest(&job->ranks, seconds);
}

static void print_head(const struct operation *operation)
{
	printf("\n# %s\n# %12s %12s %6s %6s %9s %9s %9s %8s\n", operation->name, "size (B)",
	       "elements", "type", "root", "time (us)", "algbw", "busbw", "wrong");
	printf("# %12s %12s %6s %6s %9s %9s %9s\n", "", "", "", "", "", "(GB/s)", "(GB/s)");
}

static void print_row(const struct job *job, const struct call *call, double seconds, double wrong)
{
	double algorithm = bandwidth_algorithm(operation_bytes(job, call), seconds);
	char root[16] = "-";

	if (call->operation->rooted)
		snprintf(root, sizeof(root), "%d", call->root);
	if (call->operation->pairs)
		snprintf(root, sizeof(root), "%d>%d", call->root, call->peer);
	printf("  %12llu %12zu %6s %6s %9.2f %9.3f %9.3f %8.0f\n",
	       (unsigned long long)operation_bytes(job, call), call->count,
	       call->kind == VALUES_SUMMED_FLOAT ? "float" : "uint32", root, seconds * 1e6,
	       algorithm, bandwidth_bus(algorithm, call->operation->shape, job->ranks.world),
	       wrong);
	fflush(stdout);
}

/* One line of the table. Adds to *total what was wrong on the rank where most was. */
static int run_call(struct sweep *sweep, const struct call *call, double *total)
{
	struct job *job = sweep->job;
	long found = sweep_check(sweep, call);
	double wrong = (double)found, seconds = 0;
	int error;

	if (found < 0)
		return (int)found;
	error = ranks_largest(&job->ranks, &wrong);
	if (!error)
		error = measure(sweep, call, &seconds);
	if (error)
		return error;
	*total += wrong;
	if (job_prints(job))
		print_row(job, call, seconds, wrong);
	return 0;
}

static int run_pairs(struct sweep *sweep, struct call call, double *wrong)
{
	int error = 0, world = sweep->job->ranks.world;

	for (call.root = 0; call.root < world && !error; call.root++)
		for (call.peer = 0; call.peer < world && !error; call.peer++)
			if (call.peer != call.root)
				error = run_call(sweep, &call, wrong);
	return error;
}

static int run_size(struct sweep *sweep, const struct operation *operation, size_t bytes,
		    int number, double *wrong)
{
	struct call call = operation_call(sweep->job, operation, bytes);
	int error;

	if (operation->pairs)
		return run_pairs(sweep, call, wrong);
	if (operation->rooted)
		call.root = number % sweep->job->ranks.world;
	error = run_call(sweep, &call, wrong);
	if (error || !operation->sums)
		return error;
	call.kind = VALUES_SUMMED_FLOAT;
	return run_call(sweep, &call, wrong);
}

int sweep_operation(struct sweep *sweep, const struct operation *operation)
{
	const struct job *job = sweep->job;
	double wrong = 0;
	size_t bytes;
	int error = 0, number = 0;

	if (job_prints(job))
		print_head(operation);
	for (bytes = job->min_bytes; bytes <= job->max_bytes && !error; bytes *= SIZE_STEP)
		error = run_size(sweep, operation, bytes, number++, &wrong);
	/* The largest is always tried, whatever the steps are. */
	if (!error && bytes / SIZE_STEP != job->max_bytes)
		error = run_size(sweep, operation, job->max_bytes, number, &wrong);
	return error ? error : wrong > 0 ? -EBADMSG : 0;
}

int sweep_all(struct sweep *sweep)
{
	int error = 0, first = 0;

	/* A wrong value is no reason not to try the others; a broken communicator is. */
	for (size_t i = 0; i < num_operations && (!error || error == -EBADMSG); i++) {
		error = sweep_operation(sweep, &operations[i]);
		if (!first)
			first = error;
	}
	return first;
}
