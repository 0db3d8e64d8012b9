/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - per-destination flow control: window, rate, waiters; shared by all comms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/flow.h"
#include "nic/addr.h"

/*
 * The window of verbs, bytes: several segments, so that the link stays busy between two polls. On
 * tcp it is smaller, because all bytes pass through the processor's cache (docs/performance.md).
 */
#define VERBS_WINDOW_MIN ((size_t)16 << 20)
#define VERBS_WINDOW_MAX ((size_t)32 << 20)
#define VERBS_SEGMENTS 4

static struct mesh_pace_bounds window_bounds(const struct mesh_domain *domain)
{
	struct mesh_pace_bounds bounds = {MESH_PACE_WINDOW_MIN, MESH_PACE_WINDOW_MIN};

	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		return bounds;
	bounds.most = VERBS_WINDOW_MAX;
	bounds.least = VERBS_WINDOW_MIN;
	if (domain->segment_bytes > VERBS_WINDOW_MAX / VERBS_SEGMENTS)
		bounds.least = VERBS_WINDOW_MAX;
	else if (domain->segment_bytes > VERBS_WINDOW_MIN / VERBS_SEGMENTS)
		bounds.least = domain->segment_bytes * VERBS_SEGMENTS;
	return bounds;
}

/*
 * Equal addresses are inserted once, for the flow that they share: libfabric counts the uses of an
 * entry, but ofi_rxm's own table does not give back what was counted there more than once.
 */
MESH_HOLDS(transmit)
static int address_insert(struct mesh_domain *domain, struct mesh_flow *flow)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	int ret = mesh_addr_from_sockaddr((const struct sockaddr *)flow->name, domain->name_len,
					  &flow->address, &flow->port);

	if (!ret)
		ret = fi_av_insert(domain->av, flow->name, 1, &flow->fi_addr, 0, NULL);
	if (ret == 1)
		return 0;
	if (mesh_log_limit_pass(&domain->bad_names, 1, mesh_clock_ms(), more))
		mesh_warn("%s: libfabric rejects a peer's endpoint name: %s%s", domain->nic->netdev,
			  ret < 0 ? fi_strerror(-ret) : "no such address", more);
	return ret < 0 ? ret : -EINVAL;
}

int mesh_flow_get(struct mesh_domain *domain, const void *name, struct mesh_flow **flow)
{
	struct mesh_pace_bounds bounds = window_bounds(domain);
	struct mesh_flow *found;
	int ret;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(found, &domain->flows, entry) {
		if (!memcmp(found->name, name, domain->name_len))
			goto found;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	memcpy(found->name, name, domain->name_len);
	ret = address_insert(domain, found);
	if (ret) {
		free(found);
		return ret;
	}
	mesh_pace_init(&found->pace, domain->nic->speed_mbps, &bounds);
	LIST_INSERT_HEAD(&domain->flows, found, entry);
	domain->num_flows++;
found:
	found->users++;
	*flow = found;
	return 0;
}

void mesh_flow_put(struct mesh_domain *domain, struct mesh_flow *flow)
{
	mesh_transmit_assert_locked(domain);
	if (--flow->users)
		return;
	fi_av_remove(domain->av, &flow->fi_addr, 1, 0);
	LIST_REMOVE(flow, entry);
	domain->num_flows--;
	free(flow);
}

void mesh_flows_close(struct mesh_domain *domain)
{
	struct mesh_flow *flow;

	while ((flow = LIST_FIRST(&domain->flows))) {
		LIST_REMOVE(flow, entry);
		free(flow);
	}
}

/*
 * Notes that the provider has copied @size bytes since this poll began, on tcp. A completion and a
 * write that is posted at the same moment may count as one: an estimate is enough.
 */
static void copied_note(struct mesh_domain *domain, size_t size)
{
	uint64_t polls = atomic_load_explicit(&domain->polls, memory_order_relaxed);
	uint64_t copied = atomic_load_explicit(&domain->copied, memory_order_relaxed);

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	if (atomic_load_explicit(&domain->copied_in, memory_order_relaxed) != polls)
		copied = 0;
	atomic_store_explicit(&domain->copied, copied + size, memory_order_relaxed);
	atomic_store_explicit(&domain->copied_in, polls, memory_order_relaxed);
}

void mesh_flow_posted(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
		      uint64_t now_ns)
{
	mesh_transmit_assert_locked(domain);
	atomic_store_explicit(&flow->has_posted, true, memory_order_relaxed);
	mesh_pace_posted(&flow->pace, size, now_ns);
	copied_note(domain, size);
}

/* The next poll, or this one, serves those that wait for room. */
static void room_note(struct mesh_domain *domain, struct mesh_flow *flow)
{
	if (atomic_load_explicit(&flow->num_waiters, memory_order_relaxed))
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
}

void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns, bool arrived)
{
	mesh_domain_assert_locked(domain);
	if (arrived)
		atomic_store_explicit(&flow->has_arrived, true, memory_order_relaxed);
	mesh_pace_completed(&flow->pace, size, posted_ns, mesh_clock_ns());
	/* The poll that finds it complete has often copied it: the socket was full before. */
	copied_note(domain, size);
	room_note(domain, flow);
}

void mesh_flow_restart(struct mesh_domain *domain, struct mesh_flow *flow)
{
	mesh_domain_assert_locked(domain);
	mesh_pace_restart(&flow->pace);
	atomic_store_explicit(&flow->has_posted, false, memory_order_relaxed);
	atomic_store_explicit(&flow->has_arrived, false, memory_order_relaxed);
	room_note(domain, flow);
}

void mesh_flow_forget(struct mesh_domain *domain, struct mesh_flow *flow, size_t size)
{
	mesh_domain_assert_locked(domain);
	mesh_pace_forget(&flow->pace, size);
	room_note(domain, flow);
}

/* ---- waiters ---------------------------------------------------------------------------------- */

static uint64_t completed_bytes(const struct mesh_flow *flow)
{
	return atomic_load_explicit(&flow->pace.completed, memory_order_relaxed);
}

/* Removes a waiter from the line if it is in it. */
MESH_HOLDS(transmit)
static void waiter_leave(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_transmit_assert_locked(domain);
	if (!waiter->waits)
		return;
	waiter->waits = false;
	TAILQ_REMOVE(&domain->waiters, waiter, entry);
	if (waiter->flow)
		waiter->flow->num_waiters--;
}

/* @flow: whose room it waits for; NULL: for the next poll */
MESH_HOLDS(transmit)
static void waiter_join(struct mesh_domain *domain, struct mesh_waiter *waiter,
			struct mesh_flow *flow)
{
	mesh_transmit_assert_locked(domain);
	waiter->waits = true;
	waiter->flow = flow;
	if (flow) {
		flow->num_waiters++;
		waiter->completed = completed_bytes(flow);
		/* Only what was copied holds it back: it is to be asked without a completion. */
		if (mesh_pace_has_room(&flow->pace) && !mesh_flow_has_room(domain, flow))
			waiter->completed--;
	}
	TAILQ_INSERT_TAIL(&domain->waiters, waiter, entry);
	atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
}

void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter)
{
	mesh_transmit_lock(domain);
	if (!waiter->waits)
		waiter_join(domain, waiter, flow);
	mesh_transmit_unlock(domain);
}

void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_transmit_lock(domain);
	if (!waiter->waits || waiter->flow) {
		waiter_leave(domain, waiter);
		waiter_join(domain, waiter, NULL);
	}
	mesh_transmit_unlock(domain);
}

void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_domain_assert_locked(domain);
	mesh_transmit_lock(domain);
	waiter_leave(domain, waiter);
	mesh_transmit_unlock(domain);
}

/*
 * True if it has to be asked: a poll was all that it waited for, or something has completed since,
 * or nothing is in flight that could complete. A waiter for one path of several may wait for a flow
 * that has room, and need not be asked in each poll.
 */
static bool waiter_is_due(const struct mesh_waiter *waiter)
{
	return !waiter->flow || completed_bytes(waiter->flow) != waiter->completed ||
	       !mesh_pace_in_flight(&waiter->flow->pace);
}

/*
 * Goes once along the line, from its head to the one that is the last now: a resume() that must
 * wait again is queued behind that. It may remove others, so two marks show the way.
 */
void mesh_waiters_resume(struct mesh_domain *domain)
{
	struct mesh_waiter here = {.waits = false}, last = {.waits = false}, *waiter;
	bool pending = false;

	mesh_domain_assert_locked(domain);
	mesh_transmit_lock(domain);
	/* Who waits from now on sets it again. */
	atomic_store_explicit(&domain->has_waiting, false, memory_order_relaxed);
	TAILQ_INSERT_HEAD(&domain->waiters, &here, entry);
	TAILQ_INSERT_TAIL(&domain->waiters, &last, entry);
	while ((waiter = TAILQ_NEXT(&here, entry)) != &last) {
		TAILQ_REMOVE(&domain->waiters, &here, entry);
		TAILQ_INSERT_AFTER(&domain->waiters, waiter, &here, entry);
		if (!waiter_is_due(waiter))
			continue;
		if (waiter->flow && !mesh_flow_has_room(domain, waiter->flow)) {
			/* Then the next poll makes room, without a completion. */
			pending |= mesh_pace_has_room(&waiter->flow->pace);
			continue;
		}
		waiter_leave(domain, waiter);
		mesh_transmit_unlock(domain);
		waiter->resume(waiter); /* its comm keeps the flow: closing needs domain->lock */
		mesh_transmit_lock(domain);
	}
	TAILQ_REMOVE(&domain->waiters, &here, entry);
	TAILQ_REMOVE(&domain->waiters, &last, entry);
	if (pending || !TAILQ_EMPTY(&domain->backlogged))
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	mesh_transmit_unlock(domain);
}
