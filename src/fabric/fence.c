/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - cuts off remotes that did not stop in time, by a method of their provider. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/fence_verbs.h"
#include "fabric/poll.h"
#include "fabric/provider_sockets.h"

/* Polls after a fence: the provider closes what was cut, and accepts what still waits. */
#define DRAIN_POLLS 8
/*
 * The longest wait until the provider has closed them. rxm looks every 10 ms for connections that
 * have ended, and hands out one completion in each poll (FI_OFI_RXM_CM_PROGRESS_INTERVAL,
 * FI_OFI_RXM_COMP_PER_PROGRESS): 33 ms have been measured.
 */
#define CLOSE_MS 500
/* The longest wait until the provider has read what had come. */
#define READ_MS 100
/* The longest wait for the polls: a verbs NIC that is connecting is not polled, for up to 2 s. */
#define POLLS_MS 2500

void mesh_fence_begin(struct mesh_fence *fence)
{
	if (fence->domain->provider != MESH_PROVIDER_VERBS_RXM) {
		fence->result = mesh_sockets_fence(fence->domain, fence->remote, &fence->cut);
		return;
	}
	if (mesh_remote_is_outdated(fence->domain, fence->remote) ||
	    !mesh_endpoint_is_open(fence->domain))
		return; /* its connection has ended with our endpoint */
	fence->verbs = mesh_verbs_fence_begin(fence->domain, fence->remote, fence->limit_ms);
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
	ret = mesh_verbs_fence_step(fence->verbs);
	if (ret == -EAGAIN)
		return true;
	fence->verbs = NULL;
	fence->result = ret ? ret : 1;
	if (ret == -ENOTCONN)
		fence->result = 0;
	return mesh_endpoint_is_closing(fence->domain);
}

void mesh_fence_abandon(struct mesh_fence *fence)
{
	if (fence->verbs)
		mesh_verbs_fence_abandon(fence->verbs);
	fence->verbs = NULL;
}

/* True if this process can never connect with that one again: libfabric keeps what was cut. */
static bool cut_is_final(const struct mesh_fence *fence)
{
	return fence->domain->provider == MESH_PROVIDER_VERBS_RXM && fence->result > 0 &&
	       FI_VERSION_LT(fi_version(), FI_VERSION(1, 20));
}

/* All comms with a peer may try to cut it, and a relay again and again. */
static void failure_warn(const struct mesh_fence *fence, const char *theirs)
{
	struct mesh_domain *domain = fence->domain;
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	bool passes;

	mesh_domain_lock(domain);
	passes = mesh_log_limit_pass(&fence->remote->flow->uncut, 1, mesh_clock_ms(), more);
	mesh_domain_unlock(domain);
	if (passes)
		mesh_warn("cannot cut the connection with %s: %s; what NCCL has over it fails, "
			  "because a late message may reach memory that is in use for something "
			  "else%s",
			  theirs, strerror(-fence->result), more);
}

void mesh_fence_report(const struct mesh_fence *fence)
{
	const struct mesh_remote *remote = fence->remote;
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr theirs;

	if (fence->limit_ms || mesh_addr_from_sockaddr((const struct sockaddr *)remote->name,
						       remote->name_len, &theirs, NULL))
		return;
	if (fence->result < 0)
		failure_warn(fence, mesh_addr_text(&theirs, text));
	else if (cut_is_final(fence))
		mesh_warn("cut the connection with %s on %s, so that nothing late arrives; with "
			  "libfabric %u.%u no further one can be made between these two processes, "
			  "and new communicators fail: start both again, or use libfabric 1.20 or "
			  "later",
			  mesh_addr_text(&theirs, text), fence->domain->nic->netdev,
			  FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	else
		mesh_info("cut %d connection%s with %s, so that nothing late arrives",
			  fence->result, fence->result == 1 ? "" : "s",
			  mesh_addr_text(&theirs, text));
}

void mesh_remotes_fence(struct mesh_fence *fences, int count)
{
	const struct timespec pause = {.tv_nsec = 500000};
	bool in_progress;
	int i;

	for (i = 0; i < count; i++)
		mesh_fence_begin(&fences[i]);
	do {
		in_progress = false;
		for (i = 0; i < count; i++)
			in_progress |= mesh_fence_step(&fences[i]);
		if (in_progress)
			nanosleep(&pause, NULL);
	} while (in_progress);
	for (i = 0; i < count; i++)
		mesh_fence_report(&fences[i]);
}

void mesh_remote_unread_take(struct mesh_domain *domain, struct mesh_remote *remote)
{
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_unread_sockets unread;

	mesh_sockets_unread(domain, remote, &unread);
	while (!mesh_unread_is_read(&unread) &&
	       mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()) < READ_MS) {
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
						  (closed ? POLLS_MS : CLOSE_MS))
			continue;
		drain_warn(fence, who, closed);
		return;
	}
}
