/* SPDX-License-Identifier: Apache-2.0 */
/* fence_verbs.h - ends a connection of verbs. */
#ifndef MESH_FABRIC_FENCE_VERBS_H
#define MESH_FABRIC_FENCE_VERBS_H

#include "fabric/remote.h"

struct mesh_verbs_fence;

/**
 * Starts the fence of one remote on verbs; the caller steps it. The domain's connector posts its
 * write, because that may connect. Takes domain->lock. NULL if memory is short.
 *
 * @limit_ms: of each of its two waits, at most; 0: as usual
 */
struct mesh_verbs_fence *mesh_verbs_fence_begin(struct mesh_domain *domain,
						struct mesh_remote *remote, uint64_t limit_ms);

/**
 * Ends the connection with the remote, in steps between polls, in bounded time. Takes domain->lock.
 *
 * Returns -EAGAIN while it is in progress. Any other result ends the fence and frees it: 0 when the
 * connection has ended; -ENOTCONN if there seems to be none; -ETIMEDOUT if the peer's NIC does not
 * answer, so that the connection ends when the local NIC times out; another negative errno.
 */
int mesh_verbs_fence_step(struct mesh_verbs_fence *fence);

/**
 * Stops waiting for a fence: frees it, or leaves that to the connector or to its completion. Takes
 * domain->lock.
 */
void mesh_verbs_fence_abandon(struct mesh_verbs_fence *fence);

/** The connector's thread, no lock held: posts the writes of the fences that wait for that. */
void mesh_verbs_fences_post(struct mesh_domain *domain);

/**
 * Frees the fences that timed out and whose completions have not come. The domain's endpoint and
 * completion queue are closed.
 */
void mesh_verbs_fences_free(struct mesh_domain *domain);

#endif
