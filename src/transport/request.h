/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - NCCL's requests: isend and irecv take them, test reports and frees them. */
#ifndef MESH_TRANSPORT_REQUEST_H
#define MESH_TRANSPORT_REQUEST_H

#include "base/lock.h"
#include "transport/comm.h"

/**
 * Makes progress and checks whether @request is complete; a complete request is freed.
 *
 * @done: always written
 * @size: bytes received or sent, written when done; may be NULL
 *
 * Returns 0, or the comm's error (negative errno), with *done false.
 */
int mesh_request_test(struct mesh_request *request, bool *done, size_t *size);

/**
 * Changes a request's state, which no other code may do, except from DONE to FREE; asserts the
 * legal steps.
 */
MESH_HOLDS(comm)
void mesh_request_state_set(struct mesh_request *request, enum mesh_request_state state);

/** Takes the slot for the next request; NULL if it is still in use. comm->lock held. */
MESH_HOLDS(comm)
struct mesh_request *mesh_request_take(struct mesh_comm *comm, void *data, size_t size,
				       struct mesh_registration *registration);

/** Checks what NCCL passed: direction, size, registration. Returns 0 or -EINVAL after a WARN. */
int mesh_request_check(const struct mesh_comm *comm, bool sending, const void *data, size_t size,
		       const struct mesh_registration *registration);

#endif
