/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - per-destination flow control: window, rate, FIFO of waiters; shared by all comms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/hash.h"
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
	struct mesh_flow_bucket *bucket =
		&domain->flow_index[mesh_checksum(name, domain->name_len) % MESH_FLOW_BUCKETS];
	struct mesh_pace_bounds bounds = window_bounds(domain);
	struct mesh_flow *found;
	int ret;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(found, bucket, alike) {
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
	TAILQ_INIT(&found->waiters);
	mesh_pace_init(&found->pace, domain->nic->speed_mbps, &bounds);
	LIST_INSERT_HEAD(&domain->flows, found, entry);
	domain->num_flows++;
	LIST_INSERT_HEAD(bucket, found, alike);
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
	if (flow->is_waited)
		TAILQ_REMOVE(&domain->waited, flow, waited);
	LIST_REMOVE(flow, entry);
	LIST_REMOVE(flow, alike);
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

void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter)
{
	mesh_transmit_lock(domain);
	if (!waiter->list) {
		waiter->list = &flow->waiters;
		flow->num_waiters++;
		TAILQ_INSERT_TAIL(&flow->waiters, waiter, entry);
		if (!flow->is_waited)
			TAILQ_INSERT_TAIL(&domain->waited, flow, waited);
		flow->is_waited = true;
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	}
	mesh_transmit_unlock(domain);
}

/* Removes a waiter from the list that it is in, if it is in one. */
MESH_HOLDS(transmit)
static void waiter_leave(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	struct mesh_waiter_list *list = waiter->list;

	mesh_transmit_assert_locked(domain);
	if (!list)
		return;
	waiter->list = NULL;
	TAILQ_REMOVE(list, waiter, entry);
	if (list != &domain->waiters)
		mesh_container_of(list, struct mesh_flow, waiters)->num_waiters--;
}

/*
 * Resumes each of the present waiters once, in order, while there is room. One that wants more is
 * queued again at the end, so the loop is bounded by the number of waiters at its start.
 */
MESH_HOLDS(domain)
MESH_HOLDS(transmit)
static void flow_serve(struct mesh_domain *domain, struct mesh_flow *flow)
{
	unsigned int turns = flow->num_waiters;
	struct mesh_waiter *waiter;

	for (; turns && mesh_flow_has_room(domain, flow); turns--) {
		waiter = TAILQ_FIRST(&flow->waiters);
		if (!waiter)
			break;
		waiter_leave(domain, waiter);
		mesh_transmit_unlock(domain);
		waiter->resume(waiter); /* its comm keeps the flow: closing needs domain->lock */
		mesh_transmit_lock(domain);
	}
}

/*
 * True if the waiters have to be looked at: something completed since their last turn, nothing is
 * in flight that could complete, or only what was copied before held them back. A waiter for one
 * path of several may be in the line of a flow that has room, and need not be asked in each poll.
 */
MESH_HOLDS(domain)
static bool flow_is_due(const struct mesh_domain *domain, const struct mesh_flow *flow)
{
	uint64_t polls = atomic_load_explicit(&domain->polls, memory_order_relaxed);

	return atomic_load_explicit(&flow->pace.completed, memory_order_relaxed) != flow->served ||
	       !mesh_pace_in_flight(&flow->pace) ||
	       polls - atomic_load_explicit(&domain->copied_in, memory_order_relaxed) <= 1;
}

/* True if time alone may make room, or another choice of path: nothing of it completes. */
static bool flow_is_pending(const struct mesh_domain *domain, const struct mesh_flow *flow)
{
	return !mesh_pace_in_flight(&flow->pace) ||
	       (mesh_pace_has_room(&flow->pace) && !mesh_flow_has_room(domain, flow));
}

MESH_HOLDS(transmit)
static unsigned int num_waited(const struct mesh_domain *domain)
{
	const struct mesh_flow *flow;
	unsigned int length = 0;

	TAILQ_FOREACH(flow, &domain->waited, waited)
		length++;
	return length;
}

/*
 * Goes once through the flows that have waiters, and takes those whose last waiter has left out of
 * the list. A flow without waiters may be freed meanwhile.
 */
MESH_HOLDS(domain)
static void flows_serve(struct mesh_domain *domain)
{
	struct mesh_flow *flow;
	bool pending = false;
	unsigned int turns;

	mesh_transmit_lock(domain);
	/* Who waits from now on sets it again. */
	atomic_store_explicit(&domain->has_waiting, false, memory_order_relaxed);
	for (turns = num_waited(domain); turns; turns--) {
		flow = TAILQ_FIRST(&domain->waited);
		if (!flow)
			break;
		TAILQ_REMOVE(&domain->waited, flow, waited);
		if (flow->num_waiters && flow_is_due(domain, flow)) {
			flow->served =
				atomic_load_explicit(&flow->pace.completed, memory_order_relaxed);
			flow_serve(domain, flow);
		}
		flow->is_waited = flow->num_waiters;
		if (flow->is_waited)
			TAILQ_INSERT_TAIL(&domain->waited, flow, waited);
		pending |= flow->is_waited && flow_is_pending(domain, flow);
	}
	if (pending || !TAILQ_EMPTY(&domain->backlogged) || !TAILQ_EMPTY(&domain->waiters))
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	mesh_transmit_unlock(domain);
}

/* The next poll, or this one, serves those that wait for room. */
static void room_note(struct mesh_domain *domain, struct mesh_flow *flow)
{
	if (atomic_load_explicit(&flow->is_waited, memory_order_relaxed))
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
}

void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns, bool arrived)
{
	uint64_t now_ns = mesh_clock_ns();

	mesh_domain_assert_locked(domain);
	if (arrived) {
		atomic_store_explicit(&flow->has_arrived, true, memory_order_relaxed);
		mesh_pace_round_trip(&flow->pace, size, posted_ns, now_ns);
	}
	mesh_pace_completed(&flow->pace, size, posted_ns, now_ns);
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

void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_transmit_lock(domain);
	if (waiter->list != &domain->waiters) {
		waiter_leave(domain, waiter);
		waiter->list = &domain->waiters;
		TAILQ_INSERT_TAIL(&domain->waiters, waiter, entry);
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
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
		waiter->list = NULL;
		mesh_transmit_unlock(domain);
		waiter->resume(waiter);
		mesh_transmit_lock(domain);
	}
	mesh_transmit_unlock(domain);
	flows_serve(domain);
}
