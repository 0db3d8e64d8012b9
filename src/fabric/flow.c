/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - per-destination flow control: window, rate, waiters; shared by all comms. */
#include "base/clock.h"
#include "fabric/flow.h"

/* If the NIC's speed is unknown: 10 Gbit/s, in megabits a second. */
#define SPEED_GUESS_MBPS 10000
/* A sample ends once it has this many bytes, or took this long. */
#define SAMPLE_BYTES (256u << 10)
#define SAMPLE_NS (2 * MESH_NS_PER_MS)
/* A sample that took this long replaces half of the previous estimate. */
#define MEMORY_NS (20 * MESH_NS_PER_MS)
/* Differences below this, plus an eighth of the time, are ignored. */
#define EVEN_NS 20000ull

/* ---- the pace ------------------------------------------------------------------------------- */

static uint64_t load(const _Atomic(uint64_t) *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic(uint64_t) *value, uint64_t number)
{
	atomic_store_explicit(value, number, memory_order_relaxed);
}

uint64_t mesh_pace_in_flight(const struct mesh_pace *pace)
{
	/* In this order: bytes complete after they were posted, so this is never negative. */
	uint64_t completed = atomic_load_explicit(&pace->completed, memory_order_acquire);

	return load(&pace->posted) - completed;
}

void mesh_pace_posted(struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns)
{
	if (!mesh_pace_in_flight(pace))
		store(&pace->busy_ns, now_ns);
	store(&pace->posted, load(&pace->posted) + bytes);
}

/*
 * @rate: bytes per millisecond. The window is a millisecond's bytes, within the bounds, and at
 * least twice the bandwidth-delay product, so that the rate can grow until the link is full.
 */
static void rate_set(struct mesh_pace *pace, uint64_t rate)
{
	const struct mesh_pace_bounds *bounds = &pace->bounds;
	uint64_t window = rate < bounds->most ? rate : bounds->most;
	uint64_t held = rate * (pace->shortest_ns / 1000) / 1000;

	if (window < bounds->least)
		window = bounds->least;
	if (window < 2 * held)
		window = 2 * held;
	if (window > MESH_PACE_WINDOW_MAX)
		window = MESH_PACE_WINDOW_MAX;
	store(&pace->rate, rate ? rate : 1);
	store(&pace->window, window);
}

/* Forgets what was measured: the link was away, and may be another one now. Lock B. */
static void pace_restart(struct mesh_pace *pace)
{
	store(&pace->last_ns, 0);
	pace->sample_bytes = 0;
	pace->sample_ns = 0;
	pace->shortest_ns = 0;
	rate_set(pace, pace->speed);
}

void mesh_pace_init(struct mesh_pace *pace, int speed_mbps, const struct mesh_pace_bounds *bounds)
{
	uint64_t mbps = speed_mbps > 0 ? (uint64_t)speed_mbps : SPEED_GUESS_MBPS;

	store(&pace->posted, 0);
	store(&pace->completed, 0);
	store(&pace->busy_ns, 0);
	store(&pace->latency_ns, 0);
	pace->speed = mbps * 1000 / 8;
	pace->bounds = *bounds;
	pace_restart(pace);
}

/*
 * The time that the link needed for these bytes. If it was idle before, the time includes the
 * latency of the bytes and that of the completion. The estimate of these may be too long, so the
 * result is not less than the time at the NIC's rate.
 */
static uint64_t carried_ns(const struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			   uint64_t now_ns)
{
	uint64_t last_ns = load(&pace->last_ns), ns, travel_ns, least_ns;

	if (last_ns > posted_ns)
		return now_ns > last_ns ? now_ns - last_ns : 0;
	ns = now_ns > posted_ns ? now_ns - posted_ns : 0;
	travel_ns = load(&pace->latency_ns);
	least_ns = bytes * MESH_NS_PER_MS / pace->speed;
	if (ns > least_ns + travel_ns)
		return ns - travel_ns;
	return ns < least_ns ? ns : least_ns;
}

static void sample_take(struct mesh_pace *pace)
{
	uint64_t past = load(&pace->rate) * MEMORY_NS;

	rate_set(pace,
		 (pace->sample_bytes * MESH_NS_PER_MS + past) / (pace->sample_ns + MEMORY_NS));
	pace->sample_bytes = 0;
	pace->sample_ns = 0;
}

void mesh_pace_completed(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			 uint64_t now_ns)
{
	pace->sample_ns += carried_ns(pace, bytes, posted_ns, now_ns);
	pace->sample_bytes += bytes;
	store(&pace->last_ns, now_ns);
	store(&pace->completed, load(&pace->completed) + bytes);
	if (now_ns > posted_ns && (!pace->shortest_ns || now_ns - posted_ns < pace->shortest_ns))
		pace->shortest_ns = now_ns - posted_ns;
	/* Completions that one poll finds took no time but the first. */
	if (pace->sample_bytes >= SAMPLE_BYTES || pace->sample_ns >= SAMPLE_NS)
		sample_take(pace);
}

void mesh_pace_latency_set(struct mesh_pace *pace, uint64_t round_trip_ns)
{
	store(&pace->latency_ns, round_trip_ns);
}

/* Measures nothing: the time of these bytes does not show the rate of the link. */
void mesh_pace_forget(struct mesh_pace *pace, uint64_t bytes)
{
	store(&pace->completed, load(&pace->completed) + bytes);
}

bool mesh_pace_has_room(const struct mesh_pace *pace)
{
	return mesh_pace_in_flight(pace) < load(&pace->window);
}

uint64_t mesh_pace_silence_ns(const struct mesh_pace *pace, uint64_t now_ns)
{
	uint64_t last_ns = load(&pace->last_ns), busy_ns = load(&pace->busy_ns);
	uint64_t since_ns = last_ns > busy_ns ? last_ns : busy_ns;

	return mesh_pace_in_flight(pace) && now_ns > since_ns ? now_ns - since_ns : 0;
}

/* The nanoseconds for which the bytes in flight occupy the link. */
static uint64_t queue_ns(const struct mesh_pace *pace, uint64_t now_ns)
{
	uint64_t ns = mesh_pace_in_flight(pace) * MESH_NS_PER_MS / load(&pace->rate);
	uint64_t quiet_ns = mesh_pace_silence_ns(pace, now_ns);

	/* No completion within the estimate: the link has become slower. */
	return quiet_ns > ns + load(&pace->latency_ns) ? quiet_ns : ns;
}

uint64_t mesh_pace_finish_ns(const struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns)
{
	return queue_ns(pace, now_ns) + bytes * MESH_NS_PER_MS / load(&pace->rate);
}

/* An old measurement may be outdated: such a link gets a probe. */
static bool probe_is_due(const struct mesh_pace *pace, uint64_t now_ns)
{
	uint64_t last_ns = load(&pace->last_ns);

	return last_ns && !mesh_pace_in_flight(pace) && now_ns > last_ns + MESH_PACE_PROBE_NS;
}

/* What counts in a choice. */
enum goal {
	GOAL_MESSAGE, /* is short, takes no sample and needs no room */
	GOAL_SEGMENT, /* arrives first */
	/*
	 * The short links are full: what counts is bandwidth, and the long ones add theirs. So the
	 * link that will be idle first: what was sent already no longer occupies a link.
	 */
	GOAL_BANDWIDTH,
};

/* The bytes to be sent. */
struct burden {
	uint64_t bytes;
	enum goal goal;
	uint32_t rotation;
	uint64_t now_ns;
};

static uint64_t time_ns(const struct mesh_pace *pace, const struct burden *what)
{
	uint64_t ns = mesh_pace_finish_ns(pace, what->bytes, what->now_ns);
	uint64_t travel_ns = load(&pace->latency_ns);

	if (what->goal != GOAL_BANDWIDTH)
		return ns + travel_ns;
	return ns > travel_ns ? ns - travel_ns : 0;
}

/* Differences that are negligible do not count, and for a message that of a latency. */
static int choose(const struct mesh_pace *const *paces, int count, const struct burden *what)
{
	uint64_t best_ns = UINT64_MAX, limit_ns = 0, ns;
	int i, k;

	for (i = 0; i < count; i++) {
		ns = time_ns(paces[i], what);
		if (ns >= best_ns)
			continue;
		best_ns = ns;
		if (what->goal == GOAL_MESSAGE)
			ns += load(&paces[i]->latency_ns);
		limit_ns = ns + ns / 8 + EVEN_NS;
	}
	for (i = 0; i < count; i++) {
		k = (int)((what->rotation + (uint32_t)i) % (uint32_t)count);
		if (time_ns(paces[k], what) <= limit_ns ||
		    (what->goal == GOAL_SEGMENT && probe_is_due(paces[k], what->now_ns)))
			return k;
	}
	return 0;
}

int mesh_pace_choose(const struct mesh_pace *const *paces, int count, uint64_t bytes,
		     uint32_t rotation, uint64_t now_ns)
{
	struct burden what = {bytes, GOAL_SEGMENT, rotation, now_ns};
	int k = choose(paces, count, &what);

	if (mesh_pace_has_room(paces[k]))
		return k;
	what.goal = GOAL_BANDWIDTH;
	return choose(paces, count, &what);
}

int mesh_pace_choose_for_message(const struct mesh_pace *const *paces, int count, uint64_t bytes,
				 uint32_t rotation, uint64_t now_ns)
{
	const struct burden what = {bytes, GOAL_MESSAGE, rotation, now_ns};

	return choose(paces, count, &what);
}

/* ---- the flow ------------------------------------------------------------------------------- */

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
	pace_restart(&flow->pace);
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

/* ---- waiters -------------------------------------------------------------------------------- */

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
