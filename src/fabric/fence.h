/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.h - on verbs: makes sure that no late write of a peer lands in memory that NCCL has back.
 * On tcp mesh_sockets_fence() does (provider_sockets.h).
 */
#ifndef MESH_FABRIC_FENCE_H
#define MESH_FABRIC_FENCE_H

#include "fabric/remote.h"

/*
 * The longest wait of a fence, which other links wait for: on tcp for what is unread, on verbs,
 * once the write is being posted, for a peer that has closed its end of the connection.
 */
#define MESH_FENCE_MS 100

/* A fence in progress. */
struct mesh_fence;

/**
 * Begins to end the connection with the remote: no operation of it can read or write this process's
 * memory afterwards. Closing a registration is not enough (fence.c). The provider opens a new
 * connection on demand, or over our next endpoint (mesh_endpoint_spend()). Takes domain->lock.
 *
 * Returns NULL if memory is short.
 */
struct mesh_fence *mesh_fence_begin(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * To be called with some time in between, until it does not return -EAGAIN: then the fence is over,
 * and freed. Takes domain->lock.
 *
 * Returns 1 if the connection has ended, 0 if there seems to be none; another negative errno if it
 * goes on: the caller closes the endpoint.
 */
int mesh_fence_step(struct mesh_fence *fence);

/** Ends a fence that is in progress without a result: its remote is freed. Takes domain->lock. */
void mesh_fence_abandon(struct mesh_fence *fence);

/** The connector's thread, no lock held: posts the writes of the fences that wait for that. */
void mesh_fences_post(struct mesh_domain *domain);

/**
 * Frees the fences that timed out and whose completions have not come. The domain's endpoint and
 * completion queue are closed.
 */
void mesh_fences_free(struct mesh_domain *domain);

#endif
