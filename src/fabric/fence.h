/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h - makes sure that no late write of a peer lands in memory that NCCL has back. */
#ifndef MESH_FABRIC_FENCE_H
#define MESH_FABRIC_FENCE_H

#include "fabric/remote.h"

struct mesh_verbs_fence;

/* One remote that is to be cut off, and the fence's notes. */
struct mesh_fence {
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_verbs_fence *verbs; /* NULL, or going on */
	int result;			/* connections that ended, or a negative errno */
};

/**
 * Makes sure that no operation of these remotes' reads or writes this process's memory any more,
 * when they could not be asked to stop. Closing a registration is not enough: libfabric's tcp looks
 * at the key only when a write begins, and goes on writing, and on verbs the same key may become
 * valid again. So the provider's own connections to that endpoint are ended; it makes new ones when
 * they are needed (verbs: from libfabric 1.20 on).
 *
 * @fences: @count of them, domain and remote set, the rest zero; they are cut off side by side
 *
 * Takes domain->lock. On verbs it waits, up to 2.5 s for all of them.
 */
void mesh_remotes_fence(struct mesh_fence *fences, int count);

#endif
