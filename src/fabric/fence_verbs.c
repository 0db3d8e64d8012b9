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
#include "base/container.h"
#include "base/log.h"
#include "fabric/connector.h"
#include "fabric/endpoint_renew.h"
#include "fabric/fence_verbs.h"
#include "fabric/write.h"

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

struct mesh_verbs_fence {
	struct mesh_op op;
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	bool posted;
	uint64_t limit_ms; /* of each step; 0: as usual */
	bool brief;
	uint64_t deadline_ms; /* of the current step */
	/* All under domain->lock. */
	bool ended;
	bool abandoned; /* the caller has stopped waiting: the completion frees the fence */
	LIST_ENTRY(mesh_verbs_fence) entry; /* in domain->abandoned, if it is abandoned */
	int error;
};

static void fence_ended(struct mesh_op *op, int error)
{
	struct mesh_verbs_fence *fence = mesh_container_of(op, struct mesh_verbs_fence, op);

	fence->ended = true;
	fence->error = error;
	if (fence->abandoned) {
		LIST_REMOVE(fence, entry);
		free(fence);
	}
}

/*
 * It may connect, for example after the peer has ended the connection: it claims the endpoint.
 * -ENOTCONN: that is another one by now, and must not connect with that peer.
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
	int ret;

	if (!mesh_endpoint_claim(domain))
		return -EBUSY;
	ret = -ENOTCONN;
	if (!mesh_remote_is_outdated(domain, fence->remote))
		ret = mesh_write_post(domain, fence->remote, &write, FI_COMPLETION, &fence->op);
	mesh_endpoint_release(domain);
	return ret;
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

static int post_step(struct mesh_verbs_fence *fence)
{
	int ret = fence_post(fence);

	if (!ret) {
		fence->posted = true;
		deadline_set(fence, REFUSAL_MS);
		return -EAGAIN;
	}
	if (ret && mesh_remote_is_outdated(fence->domain, fence->remote)) {
		free(fence);
		return -ENOTCONN; /* our endpoint was closed meanwhile */
	}
	/* Who has claimed the endpoint tries to connect elsewhere, for 2 s at most. */
	if (ret == -EBUSY && (!fence->limit_ms || mesh_clock_ms() < fence->deadline_ms)) {
		if (!fence->limit_ms)
			deadline_set(fence, POST_MS);
		return -EAGAIN;
	}
	if (ret == -FI_EAGAIN) {
		if (mesh_clock_ms() < fence->deadline_ms)
			return -EAGAIN;
		answer_remember(fence, false);
		ret = -ENOTCONN;
	}
	free(fence);
	return ret;
}

/* Leaves the fence to its completion, or to the domain. */
MESH_HOLDS(domain)
static void fence_leave(struct mesh_verbs_fence *fence)
{
	fence->abandoned = true;
	LIST_INSERT_HEAD(&fence->domain->abandoned, fence, entry);
}

/* Frees the fence if it has ended; at the deadline, leaves that to its completion or the domain. */
static int refusal_step(struct mesh_verbs_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	int ret = -EAGAIN;

	mesh_domain_lock(domain);
	if (fence->ended) {
		/* A write without an error means that the peer's NIC does not check addresses. */
		ret = fence->error ? 0 : -EIO;
		answer_remember(fence, true);
		free(fence);
	} else if (mesh_clock_ms() >= fence->deadline_ms &&
		   !mesh_remote_is_outdated(domain, fence->remote)) {
		ret = -ETIMEDOUT; /* else it ends with our endpoint */
		answer_remember(fence, false);
		fence_leave(fence);
	}
	mesh_domain_unlock(domain);
	return ret;
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
	return fence;
}

int mesh_verbs_fence_step(struct mesh_verbs_fence *fence)
{
	return fence->posted ? refusal_step(fence) : post_step(fence);
}

void mesh_verbs_fence_abandon(struct mesh_verbs_fence *fence)
{
	struct mesh_domain *domain = fence->domain;

	mesh_domain_lock(domain);
	if (fence->posted && !fence->ended)
		fence_leave(fence);
	else
		free(fence);
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
