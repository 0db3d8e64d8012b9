/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h - makes sure that no late write of a peer lands in memory that NCCL has back. */
#ifndef MESH_FABRIC_FENCE_H
#define MESH_FABRIC_FENCE_H

#include "fabric/provider_sockets.h"
#include "fabric/remote.h"

struct mesh_verbs_fence;

/* One remote to be cut off, and the state of its fence. */
struct mesh_fence {
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_verbs_fence *verbs; /* NULL, or in progress */
	struct mesh_found_sockets cut;	/* on tcp: what was disconnected */
	uint64_t limit_ms;		/* on verbs: once it has its turn; 0: as usual */
	/* Connections that ended; or a negative errno: on verbs the caller closes the endpoint. */
	int result;
};

/**
 * Makes sure that no operation of these remotes can read or write this process's memory afterwards;
 * for remotes that did not stop by themselves. Closing a registration is not enough: libfabric's
 * tcp checks the key only when a write begins, and continues to write, and on verbs the same key
 * may become valid again. So the fence ends the provider's own connections to that endpoint; the
 * provider opens new ones on demand, or over our next endpoint (mesh_endpoint_spend()).
 *
 * @fences: @count of them, domain and remote set, the rest zero; they run concurrently
 *
 * Takes domain->lock. On verbs it waits, up to 2.5 s for all of them, and longer while the endpoint
 * is being closed. It logs how each has ended, unless the caller is to close the endpoint.
 */
void mesh_remotes_fence(struct mesh_fence *fences, int count);

/**
 * The same for one remote, in steps: begins, on tcp also ends. For a caller that must not wait.
 * mesh_fence_step() is to be called until it returns false, with some time in between: true while
 * the fence is in progress. Both take domain->lock.
 */
void mesh_fence_begin(struct mesh_fence *fence);
bool mesh_fence_step(struct mesh_fence *fence);

/** Ends a fence that is in progress without a result: its remote is freed. Takes domain->lock. */
void mesh_fence_abandon(struct mesh_fence *fence);

/** The connector's thread, no lock held: posts the writes of the fences that wait for that. */
void mesh_fences_post(struct mesh_domain *domain);

/**
 * Frees the fences that timed out and whose completions have not come. The domain's endpoint and
 * completion queue are closed.
 */
void mesh_fences_free(struct mesh_domain *domain);

/**
 * Before a fence on tcp: polls until the provider has read what the kernel had of the remote when
 * this is called, for @limit_ms at most. The sender's kernel knows that ours has it, so its process
 * may have ended in order, and cannot send it again. No lock of the domain held.
 */
void mesh_remote_unread_take(struct mesh_domain *domain, struct mesh_remote *remote,
			     uint64_t limit_ms);

/**
 * After a fence on tcp: polls until the provider has nothing left of the connections that were cut,
 * for 0.5 s at most; a WARN reports that it has. A thread that holds the poll may add 2.5 s.
 *
 * @who: the peer, for that line
 */
void mesh_fence_drain(const struct mesh_fence *fence, const char *who);

#endif
