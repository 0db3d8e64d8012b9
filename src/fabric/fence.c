/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.c - cuts off remotes on verbs that did not stop in time.
 *
 * libfabric has no call that ends a connection: fi_av_remove() keeps it, unless a setting of the
 * whole process changes this, and then 1.17 crashes if there was no connection. But an RDMA
 * connection ends when one of its operations fails: both NICs put their queue pairs into the error
 * state and flush the queued operations of both sides. So the fence writes to an address that no
 * registration of the peer can cover. The peer's NIC refuses the write even if the peer's process
 * is stopped. If it does not, the caller closes our endpoint, which ends the connections of all
 * peers there (endpoint.h).
 *
 * Closing the registration is not enough: a NIC's driver may reuse the key for the same memory
 * (mlx5 of Linux keeps a cache of keys), and then a late write would be valid.
 */
#include <errno.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/poll.h"

/* No registration covers the first page of memory. */
#define NOWHERE 0
#define NO_KEY 0

enum fence_state {
	FENCE_WAITS,   /* in domain->fences: the connector is to post the write */
	FENCE_POSTING, /* the connector does so */
	FENCE_FAILED,  /* the provider has not accepted it: error */
	FENCE_POSTED,
	FENCE_ENDED, /* the write is over: error, 0 if it was not refused */
	FENCE_LEFT, /* by its caller, posting or posted: the connector or the completion frees it */
};

struct mesh_fence {
	struct mesh_op op;
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	/* All under domain->lock. */
	uint64_t deadline_ms; /* MESH_FENCE_MS after the connector has taken it first */
	enum fence_state state;
	LIST_ENTRY(mesh_fence) entry; /* in domain->fences or, left and posted, in abandoned */
	int error;		      /* of the post, or of the write */
};

static void fence_ended(struct mesh_op *op, int error)
{
	struct mesh_fence *fence = mesh_container_of(op, struct mesh_fence, op);

	if (fence->state == FENCE_LEFT) {
		LIST_REMOVE(fence, entry);
		free(fence);
		return;
	}
	fence->state = FENCE_ENDED;
	fence->error = error;
}

/*
 * The post may connect, for example after the peer has ended the connection: that takes up to
 * MESH_ANSWER_MS. -ENOTCONN: that is another endpoint by now, and must not connect with that peer.
 */
static int fence_post(struct mesh_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	const struct mesh_write write = {
		.data = domain->slab,
		.size = sizeof(uint64_t),
		.mr = domain->slab_mr,
		.address = NOWHERE,
		.key = NO_KEY,
	};

	if (mesh_remote_is_outdated(domain, fence->remote))
		return -ENOTCONN;
	return mesh_write_post(domain, fence->remote, &write, FI_COMPLETION, &fence->op);
}

/* The connector is at work with that remote; NULL: with none. While it is, it is not freed. */
static void work_set(struct mesh_domain *domain, struct mesh_remote *remote)
{
	mesh_transmit_lock(domain);
	domain->at_work = remote;
	mesh_transmit_unlock(domain);
}

/* Takes a fence that waits; neither it nor its remote is freed until fence_give_back(). */
static struct mesh_fence *fence_take(struct mesh_domain *domain)
{
	uint64_t deadline_ms = mesh_clock_ms() + MESH_FENCE_MS;
	struct mesh_fence *fence;

	mesh_domain_lock(domain);
	fence = LIST_FIRST(&domain->fences);
	if (fence) {
		LIST_REMOVE(fence, entry);
		fence->state = FENCE_POSTING;
		if (deadline_ms < fence->deadline_ms)
			fence->deadline_ms = deadline_ms;
		work_set(domain, fence->remote);
	}
	mesh_domain_unlock(domain);
	return fence;
}

/* The endpoint is still claimed: no completion can have come. */
static void fence_give_back(struct mesh_domain *domain, struct mesh_fence *fence, int ret)
{
	mesh_domain_lock(domain);
	work_set(domain, NULL);
	fence->error = ret;
	if (fence->state != FENCE_LEFT)
		fence->state = ret ? FENCE_FAILED : FENCE_POSTED;
	else if (ret)
		free(fence);
	else
		LIST_INSERT_HEAD(&domain->abandoned, fence, entry);
	mesh_domain_unlock(domain);
}

void mesh_fences_post(struct mesh_domain *domain)
{
	struct mesh_fence *fence;

	mesh_domain_lock(domain);
	fence = LIST_FIRST(&domain->fences);
	mesh_domain_unlock(domain);
	/* Who has claimed the endpoint wakes the connector when it gives it back. */
	if (!fence || !mesh_endpoint_claim(domain))
		return;
	while ((fence = fence_take(domain)))
		fence_give_back(domain, fence, fence_post(fence));
	mesh_endpoint_release(domain);
}

void mesh_fences_free(struct mesh_domain *domain)
{
	struct mesh_fence *fence;

	while ((fence = LIST_FIRST(&domain->abandoned))) {
		LIST_REMOVE(fence, entry);
		free(fence);
	}
}

MESH_HOLDS(domain)
static void fence_want(struct mesh_fence *fence)
{
	fence->state = FENCE_WAITS;
	LIST_INSERT_HEAD(&fence->domain->fences, fence, entry);
	mesh_connector_wake(fence->domain);
}

/*
 * The provider takes no write for long: without a connection, or because the queue of one is full,
 * whose peer's NIC does not answer.
 */
static int busy_result(const struct mesh_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	bool connected;

	mesh_transmit_lock(domain);
	connected = fence->remote->flow->connected;
	mesh_transmit_unlock(domain);
	return connected ? -ETIMEDOUT : 0;
}

/* As mesh_fence_step(). */
MESH_HOLDS(domain)
static int fence_result(struct mesh_fence *fence)
{
	if (mesh_remote_is_outdated(fence->domain, fence->remote))
		return 0; /* our endpoint was closed meanwhile */
	if (fence->state == FENCE_ENDED)
		/* A write without an error means that the peer's NIC does not check addresses. */
		return fence->error ? 1 : -EIO;
	if (fence->state == FENCE_FAILED && fence->error != -FI_EAGAIN)
		return fence->error == -ENOTCONN ? 0 : fence->error;
	if (mesh_clock_ms() >= fence->deadline_ms)
		return fence->state == FENCE_FAILED ? busy_result(fence) : -ETIMEDOUT;
	if (fence->state == FENCE_FAILED)
		fence_want(fence);
	return -EAGAIN;
}

/* The caller has done with it. */
MESH_HOLDS(domain)
static void fence_drop(struct mesh_fence *fence)
{
	if (fence->state == FENCE_WAITS)
		LIST_REMOVE(fence, entry);
	if (fence->state == FENCE_POSTED)
		LIST_INSERT_HEAD(&fence->domain->abandoned, fence, entry);
	if (fence->state == FENCE_POSTED || fence->state == FENCE_POSTING)
		fence->state = FENCE_LEFT;
	else
		free(fence);
}

/* The connector posts its write, because that may connect; it may be inside for another remote. */
struct mesh_fence *mesh_fence_begin(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_fence *fence = calloc(1, sizeof(*fence));

	if (!fence)
		return NULL;
	fence->op.complete = fence_ended;
	fence->op.expected_to_fail = true;
	fence->domain = domain;
	fence->remote = remote;
	fence->deadline_ms = mesh_clock_ms() + 2 * (uint64_t)MESH_ANSWER_MS;
	mesh_domain_lock(domain);
	fence_want(fence);
	mesh_domain_unlock(domain);
	return fence;
}

int mesh_fence_step(struct mesh_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	int ret;

	mesh_domain_poll(domain);
	mesh_domain_lock(domain);
	ret = fence_result(fence);
	if (ret != -EAGAIN)
		fence_drop(fence);
	mesh_domain_unlock(domain);
	return ret;
}

void mesh_fence_abandon(struct mesh_fence *fence)
{
	struct mesh_domain *domain = fence->domain;

	mesh_domain_lock(domain);
	fence_drop(fence);
	mesh_domain_unlock(domain);
}
