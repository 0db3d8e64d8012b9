/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.c - the life of communicators, without operations. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tests/driver/clock.h>

#include "lifecycle.h"
#include "sweep.h"

/* Large enough for several slices of several channels. */
#define SAMPLE_BYTES ((size_t)4 << 20)

static int destroy(const struct job *job, ncclComm_t comm)
{
	return job_say(job, "ncclCommDestroy", job->api.ncclCommDestroy(comm));
}

static struct call sample(const struct job *job, size_t bytes)
{
	return operation_call(job, &operations[0], bytes < job->max_bytes ? bytes : job->max_bytes);
}

/* One checked all-reduce, if kernels run. */
static int try_out(struct job *job, ncclComm_t comm, size_t bytes)
{
	struct call call = sample(job, bytes);
	struct sweep sweep;
	long wrong;
	int error;

	if (job->idle_gpu)
		return 0;
	error = sweep_open(&sweep, job, comm);
	if (error)
		return error;
	wrong = sweep_check(&sweep, &call);
	sweep_close(&sweep);
	return wrong < 0 ? (int)wrong : wrong ? -EBADMSG : 0;
}

/* --- split ----------------------------------------------------------------------------------- */

#ifdef API_HAS_NEWER
static int try_part(struct job *job, ncclComm_t part)
{
	struct ranks whole = job->ranks;
	int error;

	/* Sums are over the ranks of the part, which are numbered anew. */
	job->ranks.rank /= 2;
	job->ranks.world = (whole.world + 1 - whole.rank % 2) / 2;
	error = try_out(job, part, SAMPLE_BYTES);
	job->ranks.rank = whole.rank;
	job->ranks.world = whole.world;
	return error;
}

int lifecycle_split(struct job *job)
{
	ncclComm_t whole, part;
	int error;

	if (!job->api.ncclCommSplit)
		return -EOPNOTSUPP;
	error = job_communicator(job, &whole);
	if (error)
		return error;
	error = job_say(
		job, "ncclCommSplit",
		job->api.ncclCommSplit(whole, job->ranks.rank % 2, job->ranks.rank, &part, NULL));
	if (error)
		return error;
	error = try_part(job, part);
	/* The whole communicator still works, while its part exists and after it. */
	if (!error)
		error = try_out(job, whole, SAMPLE_BYTES);
	if (!error)
		error = destroy(job, part);
	if (!error)
		error = try_out(job, whole, SAMPLE_BYTES);
	return error ? error : destroy(job, whole);
}
#else
int lifecycle_split(struct job *job)
{
	return -EOPNOTSUPP;
}
#endif

/* --- again and again, and two at once -------------------------------------------------------- */

int lifecycle_repeat(struct job *job)
{
	ncclComm_t comm;
	int i, error = 0;

	for (i = 0; i < job->repeats && !error; i++) {
		error = job_communicator(job, &comm);
		if (!error)
			error = try_out(job, comm, sizeof(uint32_t));
		if (!error)
			error = destroy(job, comm);
		if (error)
			fprintf(stderr, "nccl_collectives: rank %d: communicator %d of %d\n",
				job->ranks.rank, i + 1, job->repeats);
	}
	return error;
}

/* Every rank starts both operations, in the same order, before it waits for one. */
static int run_both(struct sweep *sweeps, const struct call *call)
{
	const struct job *job = sweeps[0].job;
	int i, error = 0;

	for (i = 0; i < 2 && !error; i++)
		error = job_say(job, call->operation->name,
				call->operation->start(job, call, sweeps[i].send, sweeps[i].receive,
						       sweeps[i].comm, sweeps[i].stream));
	for (i = 0; i < 2 && !error; i++)
		error = job_wait(job, sweeps[i].comm, sweeps[i].stream);
	return error;
}

static int overlap(struct job *job, ncclComm_t *comms)
{
	struct call call = sample(job, SAMPLE_BYTES);
	struct sweep sweeps[2];
	int i, error;

	error = sweep_open(&sweeps[0], job, comms[0]);
	if (error)
		return error;
	error = sweep_open(&sweeps[1], job, comms[1]);
	if (error)
		goto close_first;
	for (i = 0; i < job->iterations && !error; i++)
		error = run_both(sweeps, &call);
	sweep_close(&sweeps[1]);
close_first:
	sweep_close(&sweeps[0]);
	return error;
}

int lifecycle_two(struct job *job)
{
	ncclComm_t comms[2];
	int i, error = 0;

	for (i = 0; i < 2; i++) {
		error = job_communicator(job, &comms[i]);
		if (error)
			return error;
	}
	if (!job->idle_gpu)
		error = overlap(job, comms);
	for (i = 0; i < 2 && !error; i++)
		error = try_out(job, comms[i], SAMPLE_BYTES);
	for (i = 0; i < 2 && !error; i++)
		error = destroy(job, comms[i]);
	return error;
}

/* --- registered buffers ---------------------------------------------------------------------- */

#ifdef API_HAS_NEWER
static int allocate_registered(struct job *job, ncclComm_t comm, void **memory, void **handle)
{
	size_t bytes = sweep_buffer_bytes(job);
	int error = job_say(job, "ncclMemAlloc", job->api.ncclMemAlloc(memory, bytes));

	return error ? error
		     : job_say(job, "ncclCommRegister",
			       job->api.ncclCommRegister(comm, *memory, bytes, handle));
}

static int release_registered(struct job *job, ncclComm_t comm, void *memory, void *handle)
{
	int error = job_say(job, "ncclCommDeregister", job->api.ncclCommDeregister(comm, handle));

	return error ? error : job_say(job, "ncclMemFree", job->api.ncclMemFree(memory));
}

/* Every operation from and into registered memory. On an error the process ends: no clean-up. */
static int run_registered(struct job *job, ncclComm_t comm)
{
	struct sweep sweep;
	void *handles[2];
	int error = sweep_open(&sweep, job, comm);

	if (error)
		return error;
	job->gpu.release(sweep.send);
	job->gpu.release(sweep.receive);
	sweep.owned = false;
	error = allocate_registered(job, comm, &sweep.send, &handles[0]);
	if (!error)
		error = allocate_registered(job, comm, &sweep.receive, &handles[1]);
	if (!error && !job->idle_gpu)
		error = sweep_all(&sweep);
	if (!error)
		error = release_registered(job, comm, sweep.send, handles[0]);
	if (!error)
		error = release_registered(job, comm, sweep.receive, handles[1]);
	sweep_close(&sweep);
	return error;
}

int lifecycle_registered(struct job *job)
{
	ncclComm_t comm;
	int error;

	if (!job->api.ncclCommRegister || !job->api.ncclMemAlloc)
		return -EOPNOTSUPP;
	error = job_communicator(job, &comm);
	if (!error)
		error = run_registered(job, comm);
	return error ? error : destroy(job, comm);
}
#else
int lifecycle_registered(struct job *job)
{
	return -EOPNOTSUPP;
}
#endif

/* --- the first operation --------------------------------------------------------------------- */

int lifecycle_first(struct job *job)
{
	struct call call = sample(job, sizeof(uint32_t));
	struct sweep sweep;
	ncclComm_t comm;
	int error = job_communicator(job, &comm);

	call.kind = VALUES_SUMMED_FLOAT;
	if (!error)
		error = sweep_open(&sweep, job, comm);
	if (error)
		return error;
	if (!job->idle_gpu) {
		long wrong = sweep_check(&sweep, &call);

		error = wrong < 0 ? (int)wrong : wrong ? -EBADMSG : 0;
	} else {
		error = job_say(job, call.operation->name,
				call.operation->start(job, &call, sweep.send, sweep.receive, comm,
						      sweep.stream));
	}
	sweep_close(&sweep);
	if (error && error != -EBADMSG)
		return error;
	/* Without kernels the operation does not end, and neither would ncclCommDestroy. */
	if (job->idle_gpu)
		return job_say(job, "ncclCommAbort", job->api.ncclCommAbort(comm));
	return destroy(job, comm) ? -EIO : error;
}

/* --- a rank dies ----------------------------------------------------------------------------- */

/* A plugin without faults has noticed a death on the same machine within this time. */
#define DROPPED_AFTER_S 5

/* From a signal handler: the process ends at once with status 1. */
static void abort_is_late(int signal_number)
{
	static const char text[] = "nccl_collectives: ncclCommAbort does not return\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* True if the library's version is from 2.@first to 2.@last. */
static bool version_within(const struct job *job, int first, int last)
{
	return job->api.version_code >= NCCL_VERSION(2, first, 0) &&
	       job->api.version_code < NCCL_VERSION(2, last + 1, 0);
}

/* These versions lose the error of a failed message (proxy.cc, ncclProxyProgress). */
static bool errors_are_dropped(const struct job *job)
{
	return version_within(job, 18, 18) || version_within(job, 26, 27);
}

/*
 * The progress thread of these versions repeats a failed message without end, and the abort waits
 * for it.
 */
static bool abort_hangs(const struct job *job)
{
	return version_within(job, 23, 25);
}

/* Seconds until the error came, or until NCCL will not report it; or a negative errno. */
static double await_error(const struct job *job, ncclComm_t comm)
{
	uint64_t begin_ns = now_ns();
	ncclResult_t asynchronous = ncclSuccess;
	double waited = 0;

	while (waited < job->bound_s) {
		if (job_say(job, "ncclCommGetAsyncError",
			    job->api.ncclCommGetAsyncError(comm, &asynchronous)))
			return -EIO;
		waited = (double)(now_ns() - begin_ns) / 1e9;
		if (asynchronous != ncclSuccess && asynchronous != ncclInProgress)
			return waited;
		if (errors_are_dropped(job) && waited > DROPPED_AFTER_S)
			return waited;
		poll_pause(begin_ns);
	}
	fprintf(stderr, "nccl_collectives: rank %d: rank %d is dead, but no error for %u s\n",
		job->ranks.rank, job->victim, job->bound_s);
	return -ETIMEDOUT;
}

static int survive(struct job *job, ncclComm_t comm)
{
	double noticed = await_error(job, comm);
	uint64_t begin_ns = now_ns();
	int error;

	if (noticed < 0)
		return (int)noticed;
	if (abort_hangs(job)) {
		printf("rank %d: error %.2f s after rank %d died, not aborted: this NCCL hangs\n",
		       job->ranks.rank, noticed, job->victim);
		fflush(stdout);
		/* An orderly exit could wait for the kernels. */
		_exit(EXIT_SUCCESS);
	}
	signal(SIGALRM, abort_is_late);
	alarm(job->bound_s);
	error = job_say(job, "ncclCommAbort", job->api.ncclCommAbort(comm));
	alarm(0);
	if (!error)
		printf("rank %d: %s %.2f s after rank %d died, abort took %.2f s\n",
		       job->ranks.rank,
		       errors_are_dropped(job) ? "this NCCL drops errors: none" : "error", noticed,
		       job->victim, (double)(now_ns() - begin_ns) / 1e9);
	return error;
}

int lifecycle_death(struct job *job)
{
	struct call call = sample(job, SAMPLE_BYTES);
	struct sweep sweep;
	double barrier = 0;
	ncclComm_t comm;
	int error;

	if (job->ranks.world < 2 || job->victim >= job->ranks.world)
		return -EOPNOTSUPP;
	error = job_communicator(job, &comm);
	if (!error)
		error = try_out(job, comm, SAMPLE_BYTES);
	if (!error)
		error = sweep_open(&sweep, job, comm);
	if (!error)
		error = ranks_largest(&job->ranks, &barrier);
	if (error)
		return error;
	if (job->ranks.rank == job->victim)
		raise(SIGKILL);
	error = job_say(
		job, call.operation->name,
		call.operation->start(job, &call, sweep.send, sweep.receive, comm, sweep.stream));
	/* The stream is not waited for: its kernel ends with the communicator. */
	return error ? error : survive(job, comm);
}
