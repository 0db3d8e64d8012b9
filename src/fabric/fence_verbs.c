/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence_verbs.c - ends a connection of verbs, so that no write of the peer's can arrive any more.
 *
 * libfabric has no call for that: fi_av_remove() leaves the connection, unless a setting of the
 * whole process says otherwise, and then crashes 1.17 if there was none. But an RDMA connection
 * ends when one of its operations fails: both NICs put their queue pairs into the error state, and
 * what is still queued on either side is flushed. So we write to an address that no registration
 * of the peer's can cover. Its NIC refuses that without its process, which may be stopped.
 *
 * Closing the registration is not enough: a NIC's driver may hand out the same key again for the
 * same memory (mlx5 of Linux keeps a cache of keys), and then a late write would find it valid.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <mesh/base/clock.h>
#include <mesh/base/log.h>
#include <mesh/fabric/mr.h>

#include "fabric_internal.h"

/*
 * How long to wait for room in the queue; there is none for good if there is no connection.
 * And for the refusal: a round trip, unless the peer's NIC is gone, which nothing speeds up.
 */
#define POST_MS 500
#define REFUSAL_MS 2000
/* The first page of memory belongs to nobody. */
#define NOWHERE 0
#define NO_KEY 0

struct fence {
	struct mesh_op op;
	/* Both under domain->lock. */
	bool ended;
	bool abandoned; /* whoever waited has gone: the completion frees it */
	int error;
};

static void fence_ended(struct mesh_op *op, int error)
{
	struct fence *fence = (struct fence *)op;

	fence->ended = true;
	fence->error = error;
	if (fence->abandoned)
		free(fence);
}

static int fence_post(struct mesh_domain *domain, struct mesh_remote *remote, struct fence *fence)
{
	struct mesh_write write = {
		.data = domain->slab,
		.size = sizeof(uint64_t),
		.mr = domain->slab_mr,
		.address = NOWHERE,
		.key = NO_KEY,
	};
	int ret;

	mesh_lock_take(&domain->transmit_lock);
	ret = mesh_write_post(domain, remote, &write, FI_COMPLETION, &fence->op);
	mesh_lock_release(&domain->transmit_lock);
	return ret;
}

static void pause_and_poll(struct mesh_domain *domain)
{
	const struct timespec pause = {.tv_nsec = 500000};

	mesh_domain_poll(domain);
	nanosleep(&pause, NULL);
}

/* Takes the fence back if it has ended; else, at the deadline, leaves it to its completion. */
static int fence_collect(struct mesh_domain *domain, struct fence *fence, bool late)
{
	int ret = -EAGAIN;

	mesh_lock_take(&domain->lock);
	if (fence->ended) {
		/* Nothing is there: whoever takes the write does not check what it is told. */
		ret = fence->error ? 0 : -EIO;
		free(fence);
	} else if (late) {
		ret = -ETIMEDOUT;
		fence->abandoned = true;
	}
	mesh_lock_release(&domain->lock);
	return ret;
}

int mesh_verbs_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct fence *fence = calloc(1, sizeof(*fence));
	uint64_t deadline = mesh_clock_ms() + POST_MS;
	int ret;

	if (!fence)
		return -ENOMEM;
	fence->op.complete = fence_ended;
	fence->op.expected_to_fail = true;
	while ((ret = fence_post(domain, remote, fence)) == -FI_EAGAIN &&
	       mesh_clock_ms() < deadline)
		pause_and_poll(domain);
	if (ret) {
		free(fence);
		return ret == -FI_EAGAIN ? -ENOTCONN : ret;
	}
	deadline = mesh_clock_ms() + REFUSAL_MS;
	while ((ret = fence_collect(domain, fence, mesh_clock_ms() >= deadline)) == -EAGAIN)
		pause_and_poll(domain);
	return ret;
}
