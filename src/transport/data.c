/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - NCCL's requests: isend and irecv take them, test reports and frees them. */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "control/process.h"
#include "fabric/poll.h"
#include "transport/data.h"

/* The step from DONE to FREE is not here: request_reap() takes it. */
const uint8_t mesh_request_may_follow[MESH_REQUEST_STATES] = {
	[MESH_REQUEST_WAITING] = 1 << MESH_REQUEST_FREE,
	[MESH_REQUEST_MOVING] = 1 << MESH_REQUEST_WAITING,
	[MESH_REQUEST_DONE] = 1 << MESH_REQUEST_WAITING | 1 << MESH_REQUEST_MOVING,
};

int mesh_request_refuse(const struct mesh_comm *comm, bool sending, const void *data, size_t size)
{
	const char *call = sending ? "isend" : "irecv";

	if (comm->sending != sending)
		mesh_warn("%s was called on a connection that %s", call,
			  comm->sending ? "sends" : "receives");
	else if (size > MESH_MESSAGE_MAX && sending)
		mesh_warn("a message of %zu bytes is larger than the largest, %zu", size,
			  MESH_MESSAGE_MAX);
	else
		mesh_warn("%s of %zu bytes at %p lies outside its registered memory", call, size,
			  data);
	return -EINVAL;
}

void mesh_request_overflow(const struct mesh_request *request, uint64_t other)
{
	const uint64_t own = request->size;
	uint64_t size = request->comm->sending ? own : other;
	uint64_t room = request->comm->sending ? other : own;
	char why[160];

	snprintf(why, sizeof(why),
		 "message %u of %llu bytes is larger than the receive posted for it, %llu bytes",
		 request->seq, (unsigned long long)size, (unsigned long long)room);
	mesh_comm_fail(request->comm, -EMSGSIZE, false, why);
}

uint32_t mesh_requests_done_from(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_request *request;

	mesh_comm_assert_locked(comm);
	if (comm->next_seq - seq > MESH_COMM_REQUESTS)
		seq = comm->next_seq - MESH_COMM_REQUESTS;
	for (; seq != comm->next_seq; seq++) {
		request = mesh_comm_request(comm, seq);
		if (request->seq == seq && mesh_request_is_open(request))
			break;
	}
	return seq;
}

/*
 * One poll serves all comms of a NIC: if another thread has polled since the last look of this
 * path, the path skips its own poll, once.
 */
static inline void path_poll(struct mesh_path *path)
{
	uint64_t polls = atomic_load_explicit(path->polls, memory_order_relaxed);

	if (polls != atomic_load_explicit(&path->seen_polls, memory_order_relaxed)) {
		atomic_store_explicit(&path->seen_polls, polls, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&path->seen_polls, polls + 1, memory_order_relaxed);
	mesh_domain_poll(path->domain);
}

__attribute__((noinline)) static void paths_poll(struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		path_poll(&comm->paths[i]);
}

/* Takes no lock: whatever sets DONE or an error writes everything else before it. */
static inline bool request_reap(struct mesh_request *request, int64_t *size)
{
	if (atomic_load_explicit(&request->state, memory_order_acquire) != MESH_REQUEST_DONE)
		return false;
	*size = (int64_t)request->size;
	atomic_store_explicit(&request->state, MESH_REQUEST_FREE, memory_order_release);
	return true;
}

int64_t mesh_request_test(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;
	int64_t result;
	int error;

	/* Also for a request that is done: the provider may still hold its bytes. */
	mesh_engine_busy(&comm->process->engine);
	if (request_reap(request, &result))
		return result;
	error = atomic_load_explicit(&comm->error, memory_order_acquire);
	if (!error && comm->num_paths == 1)
		path_poll(&comm->paths[0]);
	else if (!error)
		paths_poll(comm);
	/* A request that was done before the comm failed succeeds. */
	if (request_reap(request, &result))
		return result;
	if (!error)
		return MESH_REQUEST_PENDING;
	mesh_comm_end_report(comm);
	return error;
}
