/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - measures links by their completions, and chooses the one that will finish first. */
#include "base/clock.h"
#include "fabric/pace.h"

/* If the NIC's speed is unknown: 10 Gbit/s, in megabits a second. */
#define SPEED_GUESS_MBPS 10000
/* A sample ends once it has this many bytes, or took this long. */
#define SAMPLE_BYTES (256u << 10)
#define SAMPLE_NS (2 * MESH_NS_PER_MS)
/* A sample that took this long replaces half of the previous estimate. */
#define MEMORY_NS (20 * MESH_NS_PER_MS)
/* Differences below this, plus an eighth of the time, are ignored. */
#define EVEN_NS 20000ull
/* The largest transfer that shows the latency, and the number of such trips in a batch. */
#define TRIP_BYTES (64u << 10)
#define TRIPS 8

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
static void window_set(struct mesh_pace *pace, uint64_t rate)
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
	store(&pace->window, window);
}

void mesh_pace_restart(struct mesh_pace *pace)
{
	store(&pace->last_ns, 0);
	store(&pace->rate, pace->speed);
	pace->sample_bytes = 0;
	pace->sample_ns = 0;
	pace->shortest_ns = 0;
	store(&pace->latency_ns, 0);
	pace->trip_ns = 0;
	pace->trip_before_ns = 0;
	pace->trips = 0;
	window_set(pace, pace->speed);
}

void mesh_pace_init(struct mesh_pace *pace, int speed_mbps, const struct mesh_pace_bounds *bounds)
{
	uint64_t mbps = speed_mbps > 0 ? (uint64_t)speed_mbps : SPEED_GUESS_MBPS;

	store(&pace->posted, 0);
	store(&pace->completed, 0);
	store(&pace->busy_ns, 0);
	store(&pace->hint_ns, 0);
	pace->speed = mbps * 1000 / 8;
	pace->bounds = *bounds;
	mesh_pace_restart(pace);
}

static void sample_take(struct mesh_pace *pace)
{
	uint64_t old = load(&pace->rate), ns = pace->sample_ns, rate;

	rate = pace->sample_bytes * MESH_NS_PER_MS / (ns ? ns : 1);
	rate = (rate * ns + old * MEMORY_NS) / (ns + MEMORY_NS);
	rate = rate ? rate : 1;
	store(&pace->rate, rate);
	window_set(pace, rate);
	pace->sample_bytes = 0;
	pace->sample_ns = 0;
}

/* The latencies that are comparable between several links. */
enum latency_basis {
	LATENCY_UNKNOWN,
	LATENCY_HINTS, /* not all links are measured: RDMA is shorter than its hint, TCP's trip */
	LATENCY_MEASURED, /* all of them are */
};

static uint64_t latency_ns(const struct mesh_pace *pace, enum latency_basis basis)
{
	if (basis == LATENCY_UNKNOWN)
		return 0;
	return load(basis == LATENCY_MEASURED ? &pace->latency_ns : &pace->hint_ns);
}

static uint64_t latency_own_ns(const struct mesh_pace *pace)
{
	uint64_t measured_ns = load(&pace->latency_ns);

	return measured_ns ? measured_ns : load(&pace->hint_ns);
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
	travel_ns = latency_own_ns(pace);
	least_ns = bytes * MESH_NS_PER_MS / pace->speed;
	if (ns > least_ns + travel_ns)
		return ns - travel_ns;
	return ns < least_ns ? ns : least_ns;
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
	if (pace->sample_bytes >= SAMPLE_BYTES || pace->sample_ns >= SAMPLE_NS)
		sample_take(pace);
}

/*
 * A late poll makes a trip too long, and nothing makes it too short: the shortest trip is the best
 * estimate. Only the last batches count, so that the latency of a link may grow.
 */
void mesh_pace_round_trip(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			  uint64_t now_ns)
{
	uint64_t sent_ns = bytes * MESH_NS_PER_MS / pace->speed, ns, latency_ns;

	/* Completions are in order: one after the post means that the link was not idle. */
	if (bytes > TRIP_BYTES || now_ns <= posted_ns || load(&pace->last_ns) > posted_ns)
		return;
	ns = now_ns - posted_ns > sent_ns ? now_ns - posted_ns - sent_ns : 1;
	if (!pace->trip_ns || ns < pace->trip_ns)
		pace->trip_ns = ns;
	latency_ns = pace->trip_ns;
	if (pace->trip_before_ns && pace->trip_before_ns < latency_ns)
		latency_ns = pace->trip_before_ns;
	store(&pace->latency_ns, latency_ns);
	if (++pace->trips < TRIPS)
		return;
	pace->trip_before_ns = pace->trip_ns;
	pace->trip_ns = 0;
	pace->trips = 0;
}

void mesh_pace_hint(struct mesh_pace *pace, uint64_t round_trip_ns)
{
	store(&pace->hint_ns, round_trip_ns);
}

/* Takes no sample: the time of these bytes does not show the rate of the link. */
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
	return quiet_ns > ns + latency_own_ns(pace) ? quiet_ns : ns;
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

/* True if the difference to the best is negligible. */
static bool is_even(uint64_t ns, uint64_t best_ns)
{
	return ns <= best_ns + best_ns / 8 + EVEN_NS;
}

static enum latency_basis latency_basis(const struct mesh_pace *const *paces, int count)
{
	bool measured = true, hinted = true;
	int i;

	for (i = 0; i < count; i++) {
		measured &= load(&paces[i]->latency_ns) != 0;
		hinted &= load(&paces[i]->hint_ns) != 0;
	}
	if (measured)
		return LATENCY_MEASURED;
	return hinted ? LATENCY_HINTS : LATENCY_UNKNOWN;
}

/* The bytes to be sent. */
struct burden {
	uint64_t bytes;
	bool segment; /* false: a message, which takes no sample and needs no room */
	uint32_t rotation;
	uint64_t now_ns;
};

/* When the bytes would have arrived. */
static uint64_t arrival_ns(const struct mesh_pace *pace, const struct burden *what,
			   enum latency_basis basis)
{
	return mesh_pace_finish_ns(pace, what->bytes, what->now_ns) + latency_ns(pace, basis);
}

static int choose(const struct mesh_pace *const *paces, int count, const struct burden *what,
		  enum latency_basis basis)
{
	uint64_t best_ns = UINT64_MAX, best_latency_ns = 0, ns;
	int i, k;

	for (i = 0; i < count; i++) {
		ns = arrival_ns(paces[i], what, basis);
		if (ns < best_ns) {
			best_ns = ns;
			best_latency_ns = what->segment ? 0 : latency_ns(paces[i], basis);
		}
	}
	for (i = 0; i < count; i++) {
		k = (int)((what->rotation + (uint32_t)i) % (uint32_t)count);
		if (is_even(arrival_ns(paces[k], what, basis), best_ns + best_latency_ns) ||
		    (what->segment && probe_is_due(paces[k], what->now_ns)))
			return k;
	}
	return 0;
}

/*
 * The link that will be idle first, so that all of them are kept busy: what was sent already no
 * longer occupies a link.
 */
static int choose_hungriest(const struct mesh_pace *const *paces, int count,
			    const struct burden *what, enum latency_basis basis)
{
	uint64_t best_ns = UINT64_MAX, ns, travel_ns;
	int best = 0, i, k;

	for (i = 0; i < count; i++) {
		k = (int)((what->rotation + (uint32_t)i) % (uint32_t)count);
		ns = mesh_pace_finish_ns(paces[k], what->bytes, what->now_ns);
		travel_ns = latency_ns(paces[k], basis);
		ns = ns > travel_ns ? ns - travel_ns : 0;
		if (ns < best_ns) {
			best_ns = ns;
			best = k;
		}
	}
	return best;
}

int mesh_pace_choose(const struct mesh_pace *const *paces, int count, uint64_t bytes,
		     uint32_t rotation, uint64_t now_ns)
{
	const struct burden what = {bytes, true, rotation, now_ns};
	enum latency_basis basis = latency_basis(paces, count);
	int k = choose(paces, count, &what, basis);

	/* The short ones are full: what counts now is bandwidth, and the long ones add theirs. */
	if (!mesh_pace_has_room(paces[k]))
		k = choose_hungriest(paces, count, &what, basis);
	return k;
}

int mesh_pace_choose_for_message(const struct mesh_pace *const *paces, int count, uint64_t bytes,
				 uint32_t rotation, uint64_t now_ns)
{
	const struct burden what = {bytes, false, rotation, now_ns};

	return choose(paces, count, &what, latency_basis(paces, count));
}
