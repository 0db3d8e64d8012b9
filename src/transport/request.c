/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - NCCL's requests: isend and irecv take them, test reports and frees them. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "control/process.h"
#include "transport/request.h"

/* The step from DONE to FREE is not here: request_reap() takes it. */
static const uint8_t request_may_follow[MESH_REQUEST_STATES] = {
	[MESH_REQUEST_WAITING] = 1 << MESH_REQUEST_FREE,
	[MESH_REQUEST_MOVING] = 1 << MESH_REQUEST_WAITING,
	[MESH_REQUEST_DONE] = 1 << MESH_REQUEST_WAITING | 1 << MESH_REQUEST_MOVING,
};

void mesh_request_state_set(struct mesh_request *request, enum mesh_request_state state)
{
	bool legal = request_may_follow[state] &
		     1 << atomic_load_explicit(&request->state, memory_order_relaxed);

	mesh_comm_assert_locked(request->comm);
	assert(legal);
	(void)legal;
	atomic_store_explicit(&request->state, state, memory_order_release);
}

/* The arrays are reset by the first segment: small messages, which have none, do not pay for it. */
static void receive_reset(struct mesh_request_receive *receive)
{
	receive->granted = false;
	receive->grant_sent = false;
	receive->num_segments = 0;
	receive->num_arrived = 0;
}

struct mesh_request *mesh_request_take(struct mesh_comm *comm, void *data, size_t size,
				       struct mesh_registration *registration)
{
	struct mesh_request *request = mesh_comm_request(comm, comm->next_seq);

	mesh_comm_assert_locked(comm);
	if (atomic_load_explicit(&request->state, memory_order_acquire) != MESH_REQUEST_FREE)
		return NULL;
	request->seq = comm->next_seq++;
	request->data = data;
	request->size = size;
	request->registration = registration;
	if (comm->sending)
		request->send = (struct mesh_request_send){0};
	else
		receive_reset(&request->receive);
	mesh_request_state_set(request, MESH_REQUEST_WAITING);
	return request;
}

int mesh_request_check(const struct mesh_comm *comm, bool sending, const void *data, size_t size,
		       const struct mesh_registration *registration)
{
	const char *start = data;

	if (comm->sending != sending) {
		mesh_warn("%s was called on a connection that %s", sending ? "isend" : "irecv",
			  comm->sending ? "sends" : "receives");
		return -EINVAL;
	}
	if (size > MESH_MESSAGE_MAX && sending) {
		mesh_warn("a message of %zu bytes is larger than the largest, %zu", size,
			  MESH_MESSAGE_MAX);
		return -EINVAL;
	}
	if (!size)
		return 0;
	if (!registration || start < (char *)registration->data || size > registration->size ||
	    (size_t)(start - (char *)registration->data) > registration->size - size) {
		mesh_warn("%s of %zu bytes at %p lies outside its registered memory",
			  sending ? "isend" : "irecv", size, data);
		return -EINVAL;
	}
	return 0;
}

/*
 * Returns 1 if the request was done and is free now, 0 if not yet, or the comm's error. Takes no
 * lock: whatever sets DONE or an error writes everything else before it. Inline: each test calls it
 * twice.
 */
static inline int request_reap(struct mesh_request *request, size_t *size)
{
	int error;

	if (atomic_load_explicit(&request->state, memory_order_acquire) != MESH_REQUEST_DONE) {
		error = atomic_load_explicit(&request->comm->error, memory_order_acquire);
		if (!error)
			return 0;
		/* A request that was done before the comm failed succeeds. */
		if (atomic_load_explicit(&request->state, memory_order_acquire) !=
		    MESH_REQUEST_DONE)
			return error;
	}
	if (size)
		*size = request->size;
	atomic_store_explicit(&request->state, MESH_REQUEST_FREE, memory_order_release);
	return 1;
}

/*
 * One poll serves all comms of a NIC: if another thread has polled since the last look of this
 * path, the path skips its own poll, once.
 */
static void path_poll(struct mesh_path *path)
{
	uint64_t polls = atomic_load_explicit(path->polls, memory_order_relaxed);

	if (polls == atomic_load_explicit(&path->seen_polls, memory_order_relaxed) &&
	    mesh_path_poll(path))
		polls = atomic_load_explicit(path->polls, memory_order_relaxed);
	atomic_store_explicit(&path->seen_polls, polls, memory_order_relaxed);
}

int mesh_request_test(struct mesh_request *request, bool *done, size_t *size)
{
	struct mesh_comm *comm = request->comm;
	int i, ret;

	*done = false;
	/* Also for a request that is done: the provider may still hold its bytes. */
	mesh_engine_busy(&comm->process->engine);
	ret = request_reap(request, size);
	if (!ret) {
		for (i = 0; i < comm->num_paths; i++)
			path_poll(&comm->paths[i]);
		ret = request_reap(request, size);
	}
	if (ret < 0)
		return ret;
	*done = ret == 1;
	return 0;
}
