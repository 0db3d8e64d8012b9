/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - measures the present rate of a link, and chooses the link for the next bytes.
 *
 * A link is measured by its completions: the time between two completions while it is busy is the
 * time that it needed for those bytes, whatever else waits in its queue. Nothing is configured,
 * and a link that slows down, or is shared with other traffic, is detected within milliseconds. The
 * first completion after a pause contains the latency as well, which is subtracted: two links of
 * one rate carry equal parts of a large stream, however different their latencies are.
 *
 * Latency is not measured, because a rate does not show it and only some completions do: it is the
 * shortest round trip of the control connection, which runs between the same two NICs. So it is the
 * same measure for every link.
 *
 * Locks: posting has one writer at a time (the caller's lock A), completing has one (lock B).
 * Any thread may read; the results are estimates.
 */
#ifndef MESH_FABRIC_PACE_H
#define MESH_FABRIC_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The window: once so many bytes are in flight to one endpoint, which is one process on one link,
 * further writes wait. The last one may exceed it, so that large and small ones wait alike. It is
 * what the link carries in a millisecond, because the polling thread may be that late, within the
 * bounds that the provider sets (struct mesh_pace_bounds). A larger bandwidth-delay product raises
 * it.
 */
#define MESH_PACE_WINDOW_MIN (2u << 20)
#define MESH_PACE_WINDOW_MAX (256u << 20)
/* A link that has been idle for this long gets a segment, to measure its rate again. */
#define MESH_PACE_PROBE_NS 100000000ull

/* Bounds of the window, in bytes. */
struct mesh_pace_bounds {
	uint64_t least;
	uint64_t most; /* the bandwidth-delay product may exceed it, to MESH_PACE_WINDOW_MAX */
};

struct mesh_pace {
	_Atomic(uint64_t) posted;    /* bytes, ever; lock A */
	_Atomic(uint64_t) completed; /* bytes, ever; lock B */
	_Atomic(uint64_t) busy_ns;   /* when it last went from idle to busy; lock A */
	_Atomic(uint64_t) last_ns;   /* of the last completion; lock B */
	_Atomic(uint64_t) rate;	     /* bytes in a millisecond, never 0; lock B */
	_Atomic(uint64_t) window;    /* bytes; lock B */
	struct mesh_pace_bounds bounds;
	uint64_t
		shortest_ns; /* from posting to completion, the shortest ever; 0: none yet; lock B */
	_Atomic(uint64_t) latency_ns; /* round trip; 0: unknown; any thread may set it */
	uint64_t speed;		      /* nominal, of the NIC: bytes in a millisecond; constant */
};

/** Initializes @pace. @speed_mbps: the NIC's nominal speed, the first estimate; 0 if unknown. */
void mesh_pace_init(struct mesh_pace *pace, int speed_mbps, const struct mesh_pace_bounds *bounds);

/** Forgets what was measured: the link was away, and may be another one now. Lock B. */
void mesh_pace_restart(struct mesh_pace *pace);

/** Counts @bytes that were posted to the provider. Lock A. */
void mesh_pace_posted(struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns);

/** Counts @bytes that were posted at @posted_ns and have completed or failed. Lock B. */
void mesh_pace_completed(struct mesh_pace *pace, uint64_t bytes, uint64_t posted_ns,
			 uint64_t now_ns);

/** Sets the latency: another connection's round trip over the link; 0: unknown. */
void mesh_pace_latency_set(struct mesh_pace *pace, uint64_t round_trip_ns);

/** Stops counting posted @bytes that may never complete. Lock B. */
void mesh_pace_forget(struct mesh_pace *pace, uint64_t bytes);

/** Bytes in flight. */
uint64_t mesh_pace_in_flight(const struct mesh_pace *pace);

/** Nanoseconds without a completion while bytes are in flight; 0 if none are. */
uint64_t mesh_pace_silence_ns(const struct mesh_pace *pace, uint64_t now_ns);

/** True if another operation may be posted now: the window has room for a part of it at least. */
bool mesh_pace_has_room(const struct mesh_pace *pace);

/** The estimated nanoseconds until @bytes more would complete. */
uint64_t mesh_pace_finish_ns(const struct mesh_pace *pace, uint64_t bytes, uint64_t now_ns);

/**
 * Chooses the link that will complete a segment of @bytes first. Among links that are about equal
 * it takes the first from @rotation on. It may choose a link that has no room now: then waiting for
 * it is faster than using another.
 *
 * @count: links, at least 1
 *
 * Returns an index into @paces.
 */
int mesh_pace_choose(const struct mesh_pace *const *paces, int count, uint64_t bytes,
		     uint32_t rotation, uint64_t now_ns);

/**
 * The same for a small message, which needs no room: the link with the lowest latency, including
 * its queue. Links with up to twice that latency rotate.
 */
int mesh_pace_choose_for_message(const struct mesh_pace *const *paces, int count, uint64_t bytes,
				 uint32_t rotation, uint64_t now_ns);

#endif
