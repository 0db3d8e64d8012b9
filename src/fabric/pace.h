/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how fast a link takes our bytes now, and which of several links takes the next ones.
 *
 * A link is measured by what it delivers: the time between two completions while it is busy is the
 * time that it needed for those bytes, whatever else waits in its queue. Nothing is configured,
 * and a link that slows down, or is shared with somebody else, is found out within milliseconds.
 *
 * Latency is measured apart, because a rate does not show it: a short transfer that finds the link
 * idle shows the round trip when it completes, if its completion means that it has arrived. That is
 * so for all completions of verbs, and on tcp for writes with delivery completion. A plain
 * completion of tcp means that the socket has the bytes, and an injected message has no completion.
 * Where only such messages travel, the first estimate holds: the round trip of the control
 * connection, which runs between the same two NICs (mesh_pace_hint()).
 *
 * Locks: posting has one writer at a time (the caller's lock A), completing has one (lock B).
 * Anybody may ask; the answers are estimates.
 */
#ifndef MESH_FABRIC_PACE_H
#define MESH_FABRIC_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The window: bytes in flight on the way to one endpoint, which is one process on one link, before
 * any more wait here. It is what the link carries in a millisecond, because the thread that polls
 * may be that late, within the bounds that the provider sets (struct mesh_pace_bounds). Paths that
 * hold more than that raise it.
 */
#define MESH_PACE_WINDOW_MIN (2u << 20)
#define MESH_PACE_WINDOW_MAX (256u << 20)
/* A link that had nothing for so long is given a segment, to show what it can do now. */
#define MESH_PACE_PROBE_NS 100000000ull

/* Of the window, bytes. */
struct mesh_pace_bounds {
	uint64_t least;
	uint64_t most; /* but for what the path holds: up to MESH_PACE_WINDOW_MAX then */
};

struct mesh_pace {
	_Atomic(uint64_t) posted;    /* bytes, ever; lock A */
	_Atomic(uint64_t) completed; /* bytes, ever; lock B */
	_Atomic(uint64_t) busy_ns;   /* when it last went from idle to busy; lock A */
	_Atomic(uint64_t) last_ns;   /* of the last completion; lock B */
	_Atomic(uint64_t) rate;	     /* bytes in a millisecond, never 0; lock B */
	_Atomic(uint64_t) window;    /* bytes; lock B */
	struct mesh_pace_bounds bounds;
	uint64_t sample_bytes; /* of the measurement going on; lock B, as all below */
	uint64_t sample_ns;
	uint64_t shortest_ns; /* from posting to completion, the shortest ever; 0: none yet */
	/* Round trips, ns; 0: not known. The hint is anybody's to set. */
	_Atomic(uint64_t) hint_ns;
	_Atomic(uint64_t) latency_ns; /* the least of the last one or two batches of trips */
	uint64_t speed;		      /* bytes in a millisecond that the NIC claims; constant */
	uint64_t trip_ns;	      /* the least of this batch of trips; 0: it is new */
	uint64_t trip_before_ns;      /* of the batch before; 0: there is none */
	unsigned int trips;	      /* in this batch */
};

/** Starts to measure. @speed_mbps: what the NIC claims, 0 if nothing: only the first guess. */
void mesh_pace_init(struct mesh_pace *pace, int speed_mbps, const struct mesh_pace_bounds *bounds);

/** @bytes were given to the provider. Lock A. */
void mesh_pace_posted(struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns);

/** @bytes that were posted at @posted_ns are complete, or failed. Lock B. */
void mesh_pace_completed(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			 uint64_t now_ns);

/**
 * @bytes that were posted at @posted_ns have arrived: the completion says so. Only the latency is
 * measured; for a write mesh_pace_completed() has to follow. Lock B.
 */
void mesh_pace_round_trip(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			  uint64_t now_ns);

/** The first estimate of the latency: another connection's round trip over the link; 0: unknown. */
void mesh_pace_hint(struct mesh_pace *pace, uint64_t round_trip_ns);

/** @bytes that were posted may never complete: they count no more. Lock B. */
void mesh_pace_forget(struct mesh_pace *pace, uint64_t bytes);

/** Bytes in flight. */
uint64_t mesh_pace_in_flight(const struct mesh_pace *pace);

/** Nanoseconds for which nothing has completed though something is in flight; 0 if nothing is. */
uint64_t mesh_pace_silence_ns(const struct mesh_pace *pace, uint64_t now_ns);

/** True if @bytes more may be posted now. One operation always may. */
bool mesh_pace_has_room(const struct mesh_pace *pace, uint64_t bytes);

/** Nanoseconds until @bytes more would be through. */
uint64_t mesh_pace_finish_ns(const struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns);

/**
 * Chooses the link that completes a segment of @bytes first. Of several as good as each other the
 * first from @rotation on is taken. May choose one that has no room now: then waiting for it is
 * faster than the others are.
 *
 * @count: links, at least 1
 *
 * Returns an index into @paces.
 */
int mesh_pace_choose(const struct mesh_pace *const *paces, int count, uint64_t bytes,
		     uint32_t rotation, uint64_t now_ns);

/**
 * The same for a small message, which needs no room: the link with the lowest latency, with what is
 * queued there. Links up to twice as long take turns.
 */
int mesh_pace_choose_for_message(const struct mesh_pace *const *paces, int count, uint64_t bytes,
				 uint32_t rotation, uint64_t now_ns);

#endif
