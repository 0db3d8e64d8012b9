/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - measures links by their completions, and chooses the one that will finish first. */
#include "base/clock.h"
#include "fabric/pace.h"

/* If the NIC's speed is unknown: 10 Gbit/s, in megabits a second. */
#define SPEED_GUESS_MBPS 10000
/* A measurement that took this long replaces half of the previous estimate. */
#define MEMORY_NS (20 * MESH_NS_PER_MS)
/* Differences below this, plus an eighth of the time, are ignored. */
#define EVEN_NS 20000ull

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

void mesh_pace_restart(struct mesh_pace *pace)
{
	store(&pace->last_ns, 0);
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
	mesh_pace_restart(pace);
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

void mesh_pace_completed(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			 uint64_t now_ns)
{
	uint64_t ns = carried_ns(pace, bytes, posted_ns, now_ns);

	store(&pace->last_ns, now_ns);
	store(&pace->completed, load(&pace->completed) + bytes);
	if (now_ns > posted_ns && (!pace->shortest_ns || now_ns - posted_ns < pace->shortest_ns))
		pace->shortest_ns = now_ns - posted_ns;
	/* Each measurement counts by its time, so that several completions in a poll are one. */
	rate_set(pace, (bytes * MESH_NS_PER_MS + load(&pace->rate) * MEMORY_NS) / (ns + MEMORY_NS));
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
