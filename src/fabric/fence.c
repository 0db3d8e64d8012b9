/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.c - cuts off remotes that did not stop in time, by a method of their provider.
 *
 * On tcp it disconnects the provider's sockets (provider_sockets.c). On verbs libfabric has no call
 * that ends a connection: fi_av_remove() keeps it, unless a setting of the whole process changes
 * this, and then 1.17 crashes if there was no connection. But an RDMA connection ends when one of
 * its operations fails: both NICs put their queue pairs into the error state and flush the queued
 * operations of both sides. So the fence writes to an address that no registration of the peer can
 * cover. The peer's NIC refuses the write even if the peer's process is stopped. If it does not,
 * the caller closes our endpoint, which ends the connections of all peers there (endpoint.h).
 *
 * Closing the registration is not enough: a NIC's driver may reuse the key for the same memory
 * (mlx5 of Linux keeps a cache of keys), and then a late write would be valid.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
#include "fabric/provider_sockets.h"

/* Polls after a fence: the provider closes what was cut, and accepts what still waits. */
#define DRAIN_POLLS 8
/*
 * The longest wait for one step of the provider. Until it has closed what was cut: rxm looks every
 * 10 ms for connections that have ended, and hands out one completion in each poll
 * (FI_OFI_RXM_CM_PROGRESS_INTERVAL, FI_OFI_RXM_COMP_PER_PROGRESS): 33 ms have been measured. On
 * verbs for room in the queue, which never gets free without a connection. A NIC that is connecting
 * is not polled: that adds MESH_ANSWER_MS.
 */
#define STEP_MS 500
/* No registration covers the first page of memory. */
#define NOWHERE 0
#define NO_KEY 0

/* ---- verbs: the write that is refused ------------------------------------------------------- */

enum fence_state {
	FENCE_WAITS,   /* in domain->fences: the connector is to post the write */
	FENCE_POSTING, /* the connector does so */
	FENCE_FAILED,  /* the provider has not accepted it: error */
	FENCE_POSTED,
	FENCE_ENDED, /* the write is over: error, 0 if it was not refused */
	FENCE_LEFT, /* by its caller, posting or posted: the connector or the completion frees it */
};

struct mesh_verbs_fence {
	struct mesh_op op;
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	uint64_t limit_ms; /* 0: as usual */
	/* It began; the connector has taken it; it was posted, or refused by the provider; or 0. */
	uint64_t begun_ms, taken_ms, tried_ms;
	/* All under domain->lock. */
	enum fence_state state;
	LIST_ENTRY(mesh_verbs_fence)
	entry;	   /* in domain->fences or, left and posted, in abandoned */
	int error; /* of the post, or of the write */
};

static void fence_ended(struct mesh_op *op, int error)
{
	struct mesh_verbs_fence *fence = mesh_container_of(op, struct mesh_verbs_fence, op);

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

/* The connector is at work with that remote; NULL: with none. While it is, it is not freed. */
static void work_set(struct mesh_domain *domain, struct mesh_remote *remote)
{
	mesh_transmit_lock(domain);
	domain->at_work = remote;
	mesh_transmit_unlock(domain);
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
		if (!fence->taken_ms)
			fence->taken_ms = mesh_clock_ms();
		work_set(domain, fence->remote);
	}
	mesh_domain_unlock(domain);
	return fence;
}

/* The endpoint is still claimed: no completion can have come. */
static void fence_give_back(struct mesh_domain *domain, struct mesh_verbs_fence *fence, int ret)
{
	mesh_domain_lock(domain);
	work_set(domain, NULL);
	fence->error = ret;
	if (!fence->tried_ms)
		fence->tried_ms = mesh_clock_ms();
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
	struct mesh_verbs_fence *fence;

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
	struct mesh_verbs_fence *fence;

	while ((fence = LIST_FIRST(&domain->abandoned))) {
		LIST_REMOVE(fence, entry);
		free(fence);
	}
}

MESH_HOLDS(domain)
static void fence_want(struct mesh_verbs_fence *fence)
{
	fence->state = FENCE_WAITS;
	LIST_INSERT_HEAD(&fence->domain->fences, fence, entry);
	mesh_connector_wake(fence->domain);
}

static bool is_late(const struct mesh_verbs_fence *fence, uint64_t since_ms, uint64_t limit_ms)
{
	uint64_t now_ms = mesh_clock_ms();

	if (fence->limit_ms && fence->taken_ms &&
	    mesh_clock_elapsed_ms(fence->taken_ms, now_ms) >= fence->limit_ms)
		return true;
	return mesh_clock_elapsed_ms(since_ms, now_ms) >= limit_ms;
}

/*
 * The provider takes no write for long: without a connection, or because the queue of one is full,
 * whose peer's NIC does not answer.
 */
static int busy_result(const struct mesh_verbs_fence *fence)
{
	struct mesh_domain *domain = fence->domain;
	bool connected;

	mesh_transmit_lock(domain);
	connected = fence->remote->flow->connected;
	mesh_transmit_unlock(domain);
	return connected ? -ETIMEDOUT : 0;
}

/*
 * Returns -EAGAIN while it is in progress; 1 when the connection has ended; 0 if there seems to be
 * none; another negative errno if it goes on.
 */
MESH_HOLDS(domain)
static int fence_result(struct mesh_verbs_fence *fence)
{
	if (mesh_remote_is_outdated(fence->domain, fence->remote))
		return 0; /* our endpoint was closed meanwhile */
	if (fence->state == FENCE_ENDED)
		/* A write without an error means that the peer's NIC does not check addresses. */
		return fence->error ? 1 : -EIO;
	if (fence->state != FENCE_FAILED)
		return is_late(fence, fence->begun_ms, STEP_MS + MESH_ANSWER_MS) ? -ETIMEDOUT
										 : -EAGAIN;
	if (fence->error != -FI_EAGAIN)
		return fence->error == -ENOTCONN ? 0 : fence->error;
	if (is_late(fence, fence->tried_ms, STEP_MS))
		return busy_result(fence);
	fence_want(fence);
	return -EAGAIN;
}

/* The caller has done with it. */
MESH_HOLDS(domain)
static void fence_drop(struct mesh_verbs_fence *fence)
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

/* The connector posts its write, because that may connect. NULL if memory is short. */
static struct mesh_verbs_fence *verbs_begin(const struct mesh_fence *one)
{
	struct mesh_verbs_fence *fence = calloc(1, sizeof(*fence));

	if (!fence)
		return NULL;
	fence->op.complete = fence_ended;
	fence->op.expected_to_fail = true;
	fence->domain = one->domain;
	fence->remote = one->remote;
	fence->begun_ms = mesh_clock_ms();
	fence->limit_ms = one->limit_ms;
	mesh_domain_lock(fence->domain);
	fence_want(fence);
	mesh_domain_unlock(fence->domain);
	return fence;
}

/* ---- the fence of one remote ---------------------------------------------------------------- */

void mesh_fence_begin(struct mesh_fence *fence)
{
	if (fence->domain->provider != MESH_PROVIDER_VERBS_RXM) {
		fence->result = mesh_sockets_fence(fence->domain, fence->remote, &fence->cut);
		return;
	}
	if (mesh_remote_is_outdated(fence->domain, fence->remote))
		return; /* its connection has ended with our endpoint */
	fence->verbs = verbs_begin(fence);
	if (!fence->verbs)
		fence->result = -ENOMEM;
}

bool mesh_fence_step(struct mesh_fence *fence)
{
	int ret;

	/* What was given up with our endpoint ends when that is closed. */
	if (!fence->verbs)
		return mesh_endpoint_is_closing(fence->domain);
	mesh_domain_poll(fence->domain);
	mesh_domain_lock(fence->domain);
	ret = fence_result(fence->verbs);
	if (ret != -EAGAIN)
		fence_drop(fence->verbs);
	mesh_domain_unlock(fence->domain);
	if (ret == -EAGAIN)
		return true;
	fence->verbs = NULL;
	fence->result = ret;
	return mesh_endpoint_is_closing(fence->domain);
}

void mesh_fence_abandon(struct mesh_fence *fence)
{
	if (!fence->verbs)
		return;
	mesh_domain_lock(fence->domain);
	fence_drop(fence->verbs);
	mesh_domain_unlock(fence->domain);
	fence->verbs = NULL;
}

/* All comms with a peer may try to cut it, and a relay again and again. */
static void failure_warn(const struct mesh_fence *fence, const char *theirs)
{
	struct mesh_domain *domain = fence->domain;
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	mesh_domain_lock(domain);
	if (!mesh_log_limit_pass(&fence->remote->flow->uncut, 1, mesh_clock_ms(), more))
		theirs = NULL;
	mesh_domain_unlock(domain);
	if (theirs)
		mesh_warn("cannot cut the connection with %s: %s; what NCCL has over it fails, "
			  "because a late message may reach memory that is in use for something "
			  "else%s",
			  theirs, strerror(-fence->result), more);
}

static void fence_report(const struct mesh_fence *fence)
{
	const struct mesh_addr *theirs = &fence->remote->flow->address;
	char text[MESH_ADDR_TEXT_MAX];

	if (fence->result < 0 && fence->domain->provider != MESH_PROVIDER_VERBS_RXM)
		failure_warn(fence, mesh_addr_text(theirs, text));
	else if (fence->result >= 0)
		mesh_info("cut %d connection%s with %s, so that nothing late arrives",
			  fence->result, fence->result == 1 ? "" : "s",
			  mesh_addr_text(theirs, text));
}

void mesh_remotes_fence(struct mesh_fence *fences, int count)
{
	const struct timespec pause = {.tv_nsec = 500000};
	int i, pending;

	for (i = 0; i < count; i++)
		mesh_fence_begin(&fences[i]);
	do {
		pending = 0;
		for (i = 0; i < count; i++)
			pending += mesh_fence_step(&fences[i]);
		if (pending)
			nanosleep(&pause, NULL);
	} while (pending);
	for (i = 0; i < count; i++)
		fence_report(&fences[i]);
}

void mesh_remote_unread_take(struct mesh_domain *domain, struct mesh_remote *remote,
			     uint64_t limit_ms)
{
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_found_sockets unread;

	mesh_sockets_unread(domain, remote, &unread);
	while (!mesh_unread_is_read(&unread) &&
	       mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()) < limit_ms) {
		if (!mesh_domain_poll(domain))
			sched_yield(); /* another thread polls for us */
	}
}

static void drain_warn(const struct mesh_fence *fence, const char *who, bool closed)
{
	mesh_warn("%s: the provider %s the connection with %s that was cut; a late message may "
		  "reach memory that is in use for something else",
		  fence->domain->nic->netdev,
		  closed ? "could not be polled for what had arrived over" : "has not closed", who);
}

void mesh_fence_drain(const struct mesh_fence *fence, const char *who)
{
	/* Another thread may be in a poll that began before the fence: one more. */
	uint64_t until = atomic_load(&fence->domain->polls) + DRAIN_POLLS + 1;
	uint64_t begin_ms = mesh_clock_ms();
	bool closed = false, polled;

	while (!closed || atomic_load(&fence->domain->polls) < until) {
		polled = mesh_domain_poll(fence->domain);
		if (!polled)
			sched_yield(); /* that thread polls for us */
		closed = closed || mesh_cut_sockets_are_closed(&fence->cut);
		/* If this thread has the poll, a few more turns are the end of it. */
		if ((closed && polled) || mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()) <
						  (closed ? STEP_MS + MESH_ANSWER_MS : STEP_MS))
			continue;
		drain_warn(fence, who, closed);
		return;
	}
}
