/* SPDX-License-Identifier: Apache-2.0 */
/* fence_verbs.h - ends a connection of verbs. */
#ifndef MESH_FABRIC_FENCE_VERBS_H
#define MESH_FABRIC_FENCE_VERBS_H

#include "fabric/remote.h"

struct mesh_verbs_fence;

/** mesh_remotes_fence() of one on verbs: to be stepped to its end. NULL without memory. */
struct mesh_verbs_fence *mesh_verbs_fence_begin(struct mesh_domain *domain,
						struct mesh_remote *remote);

/**
 * Ends the connection with the remote, in steps between polls. A bounded time; takes domain->lock.
 *
 * Returns -EAGAIN until it is over, and the fence gone: 0 when the connection has ended; -ENOTCONN
 * if there seems to be none; -ETIMEDOUT if the peer's NIC does not answer, so that it ends when our
 * NIC gives up; another negative errno.
 */
int mesh_verbs_fence_step(struct mesh_verbs_fence *fence);

#endif
