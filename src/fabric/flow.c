/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - per-destination flow control: window, rate, FIFO of waiters; shared by all comms. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/flow.h"

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

struct mesh_flow *mesh_flow_get(struct mesh_domain *domain, const void *name, size_t name_len)
{
	struct mesh_pace_bounds bounds = window_bounds(domain);
	struct mesh_flow *flow;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(flow, &domain->flows, entry) {
		if (flow->name_len == name_len && !memcmp(flow->name, name, name_len))
			goto found;
	}
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	memcpy(flow->name, name, name_len);
	flow->name_len = name_len;
	TAILQ_INIT(&flow->waiters);
	mesh_pace_init(&flow->pace, domain->nic->speed_mbps, &bounds);
	LIST_INSERT_HEAD(&domain->flows, flow, entry);
found:
	flow->users++;
	return flow;
}

void mesh_flow_put(struct mesh_domain *domain, struct mesh_flow *flow)
{
	mesh_transmit_assert_locked(domain);
	/* If a completion may still arrive, the flow stays until reuse or the domain's close. */
	if (--flow->users || flow->num_buffers || mesh_pace_in_flight(&flow->pace))
		return;
	LIST_REMOVE(flow, entry);
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

/* Under transmit_lock, like all writers of num_claims. */
static void claim_set(struct mesh_waiter *waiter, size_t claim)
{
	_Atomic(int) *num_claims = &waiter->flow->num_claims;
	int num = atomic_load_explicit(num_claims, memory_order_relaxed);

	num += (claim != 0) - (waiter->claim != 0);
	atomic_store_explicit(num_claims, num, memory_order_relaxed);
	waiter->claim = claim;
}

void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter,
		    size_t claim)
{
	mesh_transmit_lock(domain);
	if (!waiter->queued && !waiter->flow) {
		waiter->flow = flow;
		TAILQ_INSERT_TAIL(&flow->waiters, waiter, entry);
		atomic_store(&flow->has_waiters, true);
	}
	if (waiter->flow)
		claim_set(waiter, claim);
	mesh_transmit_unlock(domain);
	/*
	 * The last completion may have arrived after the caller's check and before the waiter was
	 * queued. Either the completion sees the waiter, or this check sees the completion: each
	 * side stores before it loads, and all four are seq_cst.
	 */
	if (!mesh_pace_in_flight(&flow->pace))
		mesh_domain_wait(domain, waiter);
}

void mesh_flow_leave(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	struct mesh_flow *flow = waiter->flow;

	mesh_transmit_assert_locked(domain);
	if (!flow)
		return;
	claim_set(waiter, 0);
	waiter->flow = NULL;
	TAILQ_REMOVE(&flow->waiters, waiter, entry);
	if (TAILQ_EMPTY(&flow->waiters))
		atomic_store_explicit(&flow->has_waiters, false, memory_order_relaxed);
}

static unsigned int num_waiters(const struct mesh_flow *flow)
{
	const struct mesh_waiter *waiter;
	unsigned int length = 0;

	TAILQ_FOREACH(waiter, &flow->waiters, entry)
		length++;
	return length;
}

/*
 * Resumes each of the present waiters once, in order, while there is room for the claim of the
 * first: short segments do not overtake a long one. A waiter that needs more room is queued again
 * at the end, so the loop is bounded by the number of waiters at its start.
 */
static void waiters_serve(struct mesh_domain *domain, struct mesh_flow *flow)
{
	struct mesh_waiter *waiter;
	unsigned int turns;

	mesh_transmit_lock(domain);
	for (turns = num_waiters(flow); turns; turns--) {
		waiter = TAILQ_FIRST(&flow->waiters);
		if (!waiter || !mesh_pace_has_room(&flow->pace, waiter->claim ? waiter->claim : 1))
			break;
		mesh_flow_leave(domain, waiter);
		atomic_store_explicit(&flow->turn, waiter, memory_order_relaxed);
		mesh_transmit_unlock(domain);
		waiter->resume(waiter);
		mesh_transmit_lock(domain);
		atomic_store_explicit(&flow->turn, NULL, memory_order_relaxed);
	}
	mesh_transmit_unlock(domain);
}

void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns, bool arrived)
{
	uint64_t now_ns = mesh_clock_ns();

	mesh_domain_assert_locked(domain);
	if (arrived)
		mesh_pace_round_trip(&flow->pace, size, posted_ns, now_ns);
	mesh_pace_completed(&flow->pace, size, posted_ns, now_ns);
	if (atomic_load(&flow->has_waiters)) /* see mesh_flow_wait() */
		waiters_serve(domain, flow);
}

void mesh_flow_forget(struct mesh_domain *domain, struct mesh_flow *flow, size_t size)
{
	mesh_domain_assert_locked(domain);
	mesh_pace_forget(&flow->pace, size);
	if (atomic_load(&flow->has_waiters))
		waiters_serve(domain, flow);
}

void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_transmit_lock(domain);
	mesh_flow_leave(domain, waiter);
	if (!waiter->queued) {
		waiter->queued = true;
		TAILQ_INSERT_TAIL(&domain->waiters, waiter, entry);
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	}
	mesh_transmit_unlock(domain);
}

void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_domain_assert_locked(domain);
	mesh_transmit_lock(domain);
	mesh_flow_leave(domain, waiter);
	if (waiter->queued) {
		waiter->queued = false;
		TAILQ_REMOVE(&domain->waiters, waiter, entry);
	}
	mesh_transmit_unlock(domain);
}

void mesh_waiters_resume(struct mesh_domain *domain)
{
	struct mesh_waiter_list ready = TAILQ_HEAD_INITIALIZER(ready);
	struct mesh_waiter *waiter;

	mesh_domain_assert_locked(domain);
	/* Only the present waiters: a resume() that must wait again is queued for the next poll. */
	mesh_transmit_lock(domain);
	TAILQ_CONCAT(&ready, &domain->waiters, entry);
	while ((waiter = TAILQ_FIRST(&ready))) {
		TAILQ_REMOVE(&ready, waiter, entry);
		waiter->queued = false;
		mesh_transmit_unlock(domain);
		waiter->resume(waiter);
		mesh_transmit_lock(domain);
	}
	mesh_transmit_unlock(domain);
}
