/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence_verbs.c - ends a connection of verbs, so that no further write of the peer can arrive.
 *
 * libfabric has no call for that: fi_av_remove() keeps the connection, unless a setting of the
 * whole process changes this, and then 1.17 crashes if there was no connection. But an RDMA
 * connection ends when one of its operations fails: both NICs put their queue pairs into the error
 * state and flush the queued operations of both sides. So the fence writes to an address that no
 * registration of the peer can cover. The peer's NIC refuses the write even if the peer's process
 * is stopped.
 *
 * Closing the registration is not enough: a NIC's driver may reuse the key for the same memory
 * (mlx5 of Linux keeps a cache of keys), and then a late write would be valid.
 */
#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "fabric/connector.h"
#include "fabric/endpoint.h"
#include "fabric/fence_verbs.h"
#include "fabric/remote.h"

/*
 * The longest wait for room in the queue, which never gets free without a connection, and for the
 * refusal, which takes a round trip unless the peer's NIC is gone.
 */
#define POST_MS 500
#define REFUSAL_MS 2000
/*
 * After a fence has timed out, later ones on the same flow wait only BRIEF_MS each, for
 * BRIEF_FOR_MS: an endpoint that is gone has many comms, which are closed one after the other.
 */
#define BRIEF_MS 20
#define BRIEF_FOR_MS 5000
/* No registration covers the first page of memory. */
#define NOWHERE 0
#define NO_KEY 0

enum fence_state {
	FENCE_WAITS,   /* in domain->fences: the connector is to post the write */
	FENCE_POSTING, /* the connector does so */
	FENCE_FAILED,  /* the provider has not accepted it: error */
	FENCE_POSTED,
	FENCE_ENDED, /* the write is over: error, 0 if it was not refused */
};

struct mesh_verbs_fence {
	struct mesh_op op;
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	uint64_t limit_ms; /* of each step; 0: as usual */
	bool brief;
	uint64_t deadline_ms; /* of the current step */
	/* All under domain->lock. */
	enum fence_state state;
	/* The caller has stopped waiting: the connector or the completion frees it. */
	bool abandoned;
	LIST_ENTRY(mesh_verbs_fence) entry; /* in domain->fences or domain->abandoned */
	int error;			    /* of the post, or of the write */
};

static void fence_ended(struct mesh_op *op, int error)
{
	struct mesh_verbs_fence *fence = mesh_container_of(op, struct mesh_verbs_fence, op);

	fence->state = FENCE_ENDED;
	fence->error = error;
	if (fence->abandoned) {
		LIST_REMOVE(fence, entry);
		free(fence);
	}
}

static void deadline_set(struct mesh_verbs_fence *fence, uint64_t limit_ms)
{
	if (fence->brief)
		limit_ms = BRIEF_MS;
	if (fence->limit_ms && limit_ms > fence->limit_ms)
		limit_ms = fence->limit_ms;
	fence->deadline_ms = mesh_clock_ms() + limit_ms;
}

/* Records for later fences whether the peer's NIC has answered. */
static void answer_remember(struct mesh_verbs_fence *fence, bool answered)
{
	mesh_transmit_lock(fence->domain);
	if (answered)
		fence->remote->flow->silent_ms = 0;
	else if (!fence->brief && !fence->limit_ms)
		fence->remote->flow->silent_ms = mesh_clock_ms();
	mesh_transmit_unlock(fence->domain);
}

/* ---- the connector's thread ---------------------------------------------------------------- */

/*
 * The post may connect, for example after the peer has ended the connection: that takes up to 2 s.
 * -ENOTCONN: that is another endpoint by now, and must not connect with that peer.
 */
static int fence_post(struct mesh_verbs_fence *fence)
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

/* Takes a fence that waits; neither it nor its remote is freed until fence_give_back(). */
static struct mesh_verbs_fence *fence_take(struct mesh_domain *domain)
{
	struct mesh_verbs_fence *fence;

	mesh_domain_lock(domain);
	fence = LIST_FIRST(&domain->fences);
	if (fence) {
		LIST_REMOVE(fence, entry);
		fence->state = FENCE_POSTING;
		mesh_remote_fencing_set(domain, fence->remote, true);
	}
	mesh_domain_unlock(domain);
	return fence;
}

/* Leaves the fence to its completion, or to the domain. */
MESH_HOLDS(domain)
static void fence_leave(struct mesh_verbs_fence *fence)
{
	fence->abandoned = true;
	LIST_INSERT_HEAD(&fence->domain->abandoned, fence, entry);
}

/* The endpoint is still claimed: no completion can have come. */
static void fence_give_back(struct mesh_domain *domain, struct mesh_verbs_fence *fence, int ret)
{
	mesh_domain_lock(domain);
	mesh_remote_fencing_set(domain, fence->remote, false);
	fence->error = ret;
	fence->state = ret ? FENCE_FAILED : FENCE_POSTED;
	if (!ret)
		deadline_set(fence, REFUSAL_MS);
	if (fence->abandoned && ret)
		free(fence);
	else if (fence->abandoned)
		fence_leave(fence);
	mesh_domain_unlock(domain);
}

static bool any_waits(struct mesh_domain *domain)
{
	bool any;

	mesh_domain_lock(domain);
	any = !LIST_EMPTY(&domain->fences);
	mesh_domain_unlock(domain);
	return any;
}

void mesh_verbs_fences_post(struct mesh_domain *domain)
{
	struct mesh_verbs_fence *fence;

	/* Who has claimed the endpoint wakes the connector when it gives it back. */
	if (!any_waits(domain) || !mesh_endpoint_claim(domain))
		return;
	while ((fence = fence_take(domain)))
		fence_give_back(domain, fence, fence_post(fence));
	mesh_endpoint_release(domain);
}

/* ---- the caller ---------------------------------------------------------------------------- */

MESH_HOLDS(domain)
static void fence_want(struct mesh_verbs_fence *fence)
{
	fence->state = FENCE_WAITS;
	LIST_INSERT_HEAD(&fence->domain->fences, fence, entry);
	mesh_connector_wake(fence->domain);
}

/* Returns -EAGAIN while it is in progress. */
MESH_HOLDS(domain)
static int fence_result(struct mesh_verbs_fence *fence)
{
	bool outdated = mesh_remote_is_outdated(fence->domain, fence->remote);
	bool late = mesh_clock_ms() >= fence->deadline_ms;

	switch (fence->state) {
	case FENCE_WAITS:
		if (outdated)
			return -ENOTCONN; /* our endpoint was closed meanwhile */
		if (!mesh_endpoint_is_claimed(fence->domain))
			return -EAGAIN;
		/* Who has claimed the endpoint tries to connect elsewhere, for 2 s at most. */
		if (!fence->limit_ms)
			deadline_set(fence, POST_MS);
		return fence->limit_ms && late ? -EBUSY : -EAGAIN;
	case FENCE_POSTING:
		return fence->limit_ms && late ? -EBUSY : -EAGAIN;
	case FENCE_FAILED:
		if (outdated || fence->error != -FI_EAGAIN)
			return outdated ? -ENOTCONN : fence->error;
		if (!late) {
			fence_want(fence);
			return -EAGAIN;
		}
		answer_remember(fence, false);
		return -ENOTCONN;
	case FENCE_POSTED:
		if (!late || outdated)
			return -EAGAIN; /* if outdated it ends with our endpoint */
		answer_remember(fence, false);
		return -ETIMEDOUT;
	case FENCE_ENDED:
		answer_remember(fence, true);
		/* A write without an error means that the peer's NIC does not check addresses. */
		return fence->error ? 0 : -EIO;
	}
	return -EINVAL;
}

/* The caller has done with it. */
MESH_HOLDS(domain)
static void fence_drop(struct mesh_verbs_fence *fence)
{
	if (fence->state == FENCE_POSTING) {
		fence->abandoned = true;
		return;
	}
	if (fence->state == FENCE_POSTED) {
		fence_leave(fence);
		return;
	}
	if (fence->state == FENCE_WAITS)
		LIST_REMOVE(fence, entry);
	free(fence);
}

struct mesh_verbs_fence *mesh_verbs_fence_begin(struct mesh_domain *domain,
						struct mesh_remote *remote, uint64_t limit_ms)
{
	struct mesh_verbs_fence *fence = calloc(1, sizeof(*fence));
	uint64_t silent_ms;

	if (!fence)
		return NULL;
	fence->op.complete = fence_ended;
	fence->op.expected_to_fail = true;
	fence->domain = domain;
	fence->remote = remote;
	fence->limit_ms = limit_ms;
	mesh_transmit_lock(domain);
	silent_ms = remote->flow->silent_ms;
	mesh_transmit_unlock(domain);
	fence->brief = silent_ms && mesh_clock_ms() - silent_ms < BRIEF_FOR_MS;
	deadline_set(fence, POST_MS);
	mesh_domain_lock(domain);
	fence_want(fence);
	mesh_domain_unlock(domain);
	return fence;
}

int mesh_verbs_fence_step(struct mesh_verbs_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	int ret;

	mesh_domain_lock(domain);
	ret = fence_result(fence);
	if (ret != -EAGAIN)
		fence_drop(fence);
	mesh_domain_unlock(domain);
	return ret;
}

void mesh_verbs_fence_abandon(struct mesh_verbs_fence *fence)
{
	struct mesh_domain *domain = fence->domain;

	mesh_domain_lock(domain);
	fence_drop(fence);
	mesh_domain_unlock(domain);
}

void mesh_verbs_fences_free(struct mesh_domain *domain)
{
	struct mesh_verbs_fence *fence;

	while ((fence = LIST_FIRST(&domain->abandoned))) {
		LIST_REMOVE(fence, entry);
		free(fence);
	}
}
