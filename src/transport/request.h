/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - NCCL's requests: isend and irecv take them, test reports and frees them. */
#ifndef MESH_TRANSPORT_REQUEST_H
#define MESH_TRANSPORT_REQUEST_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "transport/comm.h"

#define MESH_REQUEST_PENDING INT64_MIN

/**
 * Makes progress and checks whether @request is complete; a complete request is freed.
 *
 * Returns the bytes received or sent if it is, MESH_REQUEST_PENDING if not, or the comm's error
 * (negative errno).
 */
int64_t mesh_request_test(struct mesh_request *request);

/* For each state, one bit for each state that it may follow. */
extern const uint8_t mesh_request_may_follow[MESH_REQUEST_STATES];

/**
 * Changes a request's state, which no other code may do, except from DONE to FREE; asserts the
 * legal steps. comm->lock held.
 */
MESH_HOLDS(comm)
static inline void mesh_request_state_set(struct mesh_request *request,
					  enum mesh_request_state state)
{
	mesh_comm_assert_locked(request->comm);
	assert(mesh_request_may_follow[state] &
	       1 << atomic_load_explicit(&request->state, memory_order_relaxed));
	atomic_store_explicit(&request->state, state, memory_order_release);
}

/** Takes the slot for the next request; NULL if it is in use. @sending: comm's. comm->lock held. */
MESH_HOLDS(comm)
static inline struct mesh_request *mesh_request_take(struct mesh_comm *comm, bool sending,
						     void *data, size_t size,
						     struct mesh_registration *registration)
{
	struct mesh_request *request = mesh_comm_request(comm, comm->next_seq);

	mesh_comm_assert_locked(comm);
	if (atomic_load_explicit(&request->state, memory_order_acquire) != MESH_REQUEST_FREE)
		return NULL;
	request->comm = comm;
	request->seq = comm->next_seq++;
	atomic_store_explicit(&comm->quiet, false, memory_order_relaxed);
	request->data = data;
	request->size = size;
	request->registration = registration;
	if (sending) {
		request->send = (struct mesh_request_send){0};
	} else {
		/* The first segment resets the arrays; small messages have none. */
		request->receive.grant = MESH_GRANT_NONE;
		request->receive.num_segments = 0;
		request->receive.num_arrived = 0;
	}
	mesh_request_state_set(request, MESH_REQUEST_WAITING);
	return request;
}

/**
 * How many requests are complete, from the first on: the number of the oldest that is not.
 *
 * @seq: so many are known to be
 */
MESH_HOLDS(comm)
uint32_t mesh_requests_done_from(struct mesh_comm *comm, uint32_t seq);

/** The same where nothing is known. */
MESH_HOLDS(comm)
static inline uint32_t mesh_requests_done(struct mesh_comm *comm)
{
	return mesh_requests_done_from(comm, comm->next_seq - MESH_COMM_REQUESTS);
}

/** Logs why a call is refused. Returns -EINVAL. */
MESH_COLD
int mesh_request_refuse(const struct mesh_comm *comm, bool sending, const void *data, size_t size);

/**
 * Ends the comm: the message is larger than its receive.
 *
 * @other: bytes of what is at the other end, the receive or the message
 */
MESH_HOLDS(comm)
MESH_COLD
void mesh_request_overflow(const struct mesh_request *request, uint64_t other);

/** Checks what NCCL passed: direction, size, registration. Returns 0 or -EINVAL after a WARN. */
static inline int mesh_request_check(const struct mesh_comm *comm, bool sending, const void *data,
				     size_t size, const struct mesh_registration *registration)
{
	size_t offset;

	if (comm->sending != sending || (sending && size > MESH_MESSAGE_MAX))
		return mesh_request_refuse(comm, sending, data, size);
	if (!size)
		return 0;
	if (!registration)
		return mesh_request_refuse(comm, sending, data, size);
	/* Far too large if the data lies before the registration. */
	offset = (uintptr_t)data - (uintptr_t)registration->data;
	if (size > registration->size || offset > registration->size - size)
		return mesh_request_refuse(comm, sending, data, size);
	return 0;
}

#endif
