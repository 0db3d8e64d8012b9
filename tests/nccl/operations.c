/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c - calls of NCCL and their expected results. */
#include <stdio.h>

#include "operations.h"

#define ELEMENT_BYTES 4

static ncclDataType_t type_of(const struct call *call)
{
	return call->kind == VALUES_SUMMED_FLOAT ? ncclFloat : ncclUint32;
}

static ncclResult_t start_all_reduce(const struct job *job, const struct call *call,
				     const void *send, void *receive, ncclComm_t comm, void *stream)
{
	return job->api.ncclAllReduce(send, receive, call->count, type_of(call), ncclSum, comm,
				      stream);
}

static ncclResult_t start_all_gather(const struct job *job, const struct call *call,
				     const void *send, void *receive, ncclComm_t comm, void *stream)
{
	return job->api.ncclAllGather(send, receive, call->count, type_of(call), comm, stream);
}

static ncclResult_t start_reduce_scatter(const struct job *job, const struct call *call,
					 const void *send, void *receive, ncclComm_t comm,
					 void *stream)
{
	return job->api.ncclReduceScatter(send, receive, call->count, type_of(call), ncclSum, comm,
					  stream);
}

static ncclResult_t start_broadcast(const struct job *job, const struct call *call,
				    const void *send, void *receive, ncclComm_t comm, void *stream)
{
	return job->api.ncclBroadcast(send, receive, call->count, type_of(call), call->root, comm,
				      stream);
}

static ncclResult_t start_reduce(const struct job *job, const struct call *call, const void *send,
				 void *receive, ncclComm_t comm, void *stream)
{
	return job->api.ncclReduce(send, receive, call->count, type_of(call), ncclSum, call->root,
				   comm, stream);
}

static ncclResult_t start_all_to_all(const struct job *job, const struct call *call,
				     const void *send, void *receive, ncclComm_t comm, void *stream)
{
	const char *from = send;
	char *to = receive;
	size_t step = call->count * ELEMENT_BYTES;
	ncclResult_t result = job->api.ncclGroupStart(), ended;

	for (int peer = 0; peer < job->ranks.world && result == ncclSuccess; peer++) {
		result = job->api.ncclSend(from + (size_t)peer * step, call->count, type_of(call),
					   peer, comm, stream);
		if (result == ncclSuccess)
			result = job->api.ncclRecv(to + (size_t)peer * step, call->count,
						   type_of(call), peer, comm, stream);
	}
	ended = job->api.ncclGroupEnd();
	return result != ncclSuccess ? result : ended;
}

static ncclResult_t start_pair(const struct job *job, const struct call *call, const void *send,
			       void *receive, ncclComm_t comm, void *stream)
{
	if (job->ranks.rank == call->root)
		return job->api.ncclSend(send, call->count, type_of(call), call->peer, comm,
					 stream);
	if (job->ranks.rank == call->peer)
		return job->api.ncclRecv(receive, call->count, type_of(call), call->root, comm,
					 stream);
	return ncclSuccess;
}

/* --- what must arrive ------------------------------------------------------------------------ */

static struct values_origin sum_from(const struct job *job, const struct call *call, size_t first)
{
	return (struct values_origin){
		.kind = call->kind, .world = job->ranks.world, .first = first};
}

static bool origin_sum(const struct job *job, const struct call *call, size_t at,
		       struct values_origin *origin, size_t *count)
{
	*origin = sum_from(job, call, at);
	return true;
}

static bool origin_sum_at_root(const struct job *job, const struct call *call, size_t at,
			       struct values_origin *origin, size_t *count)
{
	*origin = sum_from(job, call, at);
	return job->ranks.rank == call->root;
}

static bool origin_scattered(const struct job *job, const struct call *call, size_t at,
			     struct values_origin *origin, size_t *count)
{
	*origin = sum_from(job, call, (size_t)job->ranks.rank * call->count + at);
	*count = call->count - at;
	return true;
}

static bool origin_of_root(const struct job *job, const struct call *call, size_t at,
			   struct values_origin *origin, size_t *count)
{
	*origin = (struct values_origin){.kind = call->kind, .rank = call->root, .first = at};
	return true;
}

static bool origin_pair(const struct job *job, const struct call *call, size_t at,
			struct values_origin *origin, size_t *count)
{
	origin_of_root(job, call, at, origin, count);
	return job->ranks.rank == call->peer;
}

/* Part after part: rank 0's, rank 1's, ... */
static bool origin_gathered(const struct job *job, const struct call *call, size_t at,
			    struct values_origin *origin, size_t *count)
{
	*origin = (struct values_origin){
		.kind = call->kind, .rank = (int)(at / call->count), .first = at % call->count};
	*count = call->count - at % call->count;
	return true;
}

static bool origin_exchanged(const struct job *job, const struct call *call, size_t at,
			     struct values_origin *origin, size_t *count)
{
	origin_gathered(job, call, at, origin, count);
	origin->first += (size_t)job->ranks.rank * call->count;
	return true;
}

const struct operation operations[] = {
	{.name = "all_reduce",
	 .shape = BANDWIDTH_ALL_REDUCE,
	 .sums = true,
	 .start = start_all_reduce,
	 .origin = origin_sum},
	{.name = "all_gather",
	 .shape = BANDWIDTH_ALL_BUT_OWN,
	 .divided = true,
	 .start = start_all_gather,
	 .origin = origin_gathered},
	{.name = "reduce_scatter",
	 .shape = BANDWIDTH_ALL_BUT_OWN,
	 .divided = true,
	 .sums = true,
	 .start = start_reduce_scatter,
	 .origin = origin_scattered},
	{.name = "broadcast",
	 .shape = BANDWIDTH_ONCE,
	 .rooted = true,
	 .start = start_broadcast,
	 .origin = origin_of_root},
	{.name = "reduce",
	 .shape = BANDWIDTH_ONCE,
	 .rooted = true,
	 .sums = true,
	 .start = start_reduce,
	 .origin = origin_sum_at_root},
	{.name = "all_to_all",
	 .shape = BANDWIDTH_ALL_BUT_OWN,
	 .divided = true,
	 .start = start_all_to_all,
	 .origin = origin_exchanged},
	{.name = "pair",
	 .shape = BANDWIDTH_ONCE,
	 .pairs = true,
	 .start = start_pair,
	 .origin = origin_pair},
};

const size_t num_operations = sizeof(operations) / sizeof(operations[0]);

size_t operation_elements(const struct job *job, const struct call *call)
{
	return call->count * (call->operation->divided ? (size_t)job->ranks.world : 1);
}

uint64_t operation_bytes(const struct job *job, const struct call *call)
{
	return (uint64_t)operation_elements(job, call) * ELEMENT_BYTES;
}

struct call operation_call(const struct job *job, const struct operation *operation, size_t bytes)
{
	size_t parts = operation->divided ? (size_t)job->ranks.world : 1;
	struct call call = {
		.operation = operation,
		.kind = operation->sums ? VALUES_SUMMED_INT : VALUES_MOVED,
		.count = (bytes / ELEMENT_BYTES + parts - 1) / parts,
	};

	if (!call.count)
		call.count = 1;
	return call;
}

static size_t result_elements(const struct job *job, const struct call *call)
{
	if (call->operation->origin == origin_scattered)
		return call->count;
	return operation_elements(job, call);
}

size_t operation_wrong(const struct job *job, const struct call *call, const uint32_t *result)
{
	size_t all = result_elements(job, call), at = 0, wrong = 0, bad, where, count;
	struct values_origin origin;
	char text[128];

	for (; at < all; at += count) {
		count = all - at;
		if (!call->operation->origin(job, call, at, &origin, &count))
			return 0;
		bad = values_wrong(result + at, origin, count, &where);
		if (bad && !wrong) {
			values_explain(result[at + where], origin, origin.first + where, text,
				       sizeof(text));
			fprintf(stderr, "nccl_collectives: rank %d: %s: element %zu %s\n",
				job->ranks.rank, call->operation->name, at + where, text);
		}
		wrong += bad;
	}
	return wrong;
}
