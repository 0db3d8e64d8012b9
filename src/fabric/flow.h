/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - per-destination flow control: window, rate, waiters; shared by all comms. */
#ifndef MESH_FABRIC_FLOW_H
#define MESH_FABRIC_FLOW_H

#include "base/lock.h"
#include "base/log.h"
#include "fabric/domain.h"

/*
 * The pace of a link: measures its present rate, and chooses the link for the next bytes.
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
	uint64_t sample_bytes; /* of the current sample; lock B */
	uint64_t sample_ns;
	uint64_t shortest_ns;	      /* from posting to completion; 0: none yet; lock B */
	_Atomic(uint64_t) latency_ns; /* round trip; 0: unknown; any thread may set it */
	uint64_t speed;		      /* nominal, of the NIC: bytes in a millisecond; constant */
};

/** Initializes @pace. @speed_mbps: the NIC's nominal speed, the first estimate; 0 if unknown. */
void mesh_pace_init(struct mesh_pace *pace, int speed_mbps, const struct mesh_pace_bounds *bounds);

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

/* ---- the flow to one endpoint --------------------------------------------------------------- */

/*
 * The traffic from this domain to another endpoint, for all comms together: the bytes in flight,
 * the measured rate, and the waiters for room in the window.
 */
struct mesh_flow {
	LIST_ENTRY(mesh_flow) entry; /* domain->flows; transmit_lock, as all but the pace */
	uint8_t name[MESH_ENDPOINT_NAME_MAX]; /* the endpoint's, domain->name_len bytes */
	struct mesh_addr address;	      /* the same, with the port */
	uint16_t port;
	fi_addr_t fi_addr; /* the same in the address vector */
	int users;	   /* remotes */
	/* Posting is under transmit_lock, completing under lock. */
	struct mesh_pace pace;
	/*
	 * The provider has accepted something since the last error: a post does not connect. Used
	 * where the domain has a connector.
	 */
	bool connected;
	/* Since mesh_flow_restart(): writes were posted; one has arrived. */
	_Atomic(bool) has_posted, has_arrived;
	/* Lines: fences that failed, and comms that the peer has ended; under domain->lock. */
	struct mesh_log_limit uncut, ends;
	int num_buffers;	  /* message buffers taken and not put back */
	_Atomic(int) num_waiters; /* for room, in domain->waiters */
};

/*
 * A user that could not post. It waits for one of two events at a time: the next poll, if the
 * provider or the buffers had no room, or room in a flow.
 */
struct mesh_waiter {
	/* Under transmit_lock. */
	TAILQ_ENTRY(mesh_waiter) entry; /* domain->waiters, while it waits */
	bool waits;
	struct mesh_flow *flow; /* for whose room; NULL: for the next poll */
	uint64_t completed;	/* bytes that had completed there when it began to wait */
	void (*resume)(struct mesh_waiter *waiter); /* domain->lock held, transmit_lock not */
};

/** Queues @waiter for the next poll. Idempotent. Any lock except transmit_lock may be held. */
void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * True if another write may be posted on @flow now: its window has room, and not too much has been
 * copied since the last poll began (mesh_flow_posted()). An estimate, without a lock.
 */
static inline bool mesh_flow_has_room(const struct mesh_domain *domain,
				      const struct mesh_flow *flow)
{
	if (atomic_load_explicit(&domain->copied, memory_order_relaxed) >= MESH_COPY_MAX &&
	    atomic_load_explicit(&domain->copied_in, memory_order_relaxed) ==
		    atomic_load_explicit(&domain->polls, memory_order_relaxed))
		return false;
	return mesh_pace_has_room(&flow->pace);
}

/**
 * True if a write has arrived since the flow began or mesh_flow_restart(), as far as completions
 * tell that. No lock.
 */
static inline bool mesh_flow_has_carried(const struct mesh_flow *flow)
{
	return atomic_load_explicit(&flow->has_arrived, memory_order_relaxed);
}

/**
 * True if writes were posted since then, and none of them has arrived. An estimate, without a lock.
 */
static inline bool mesh_flow_is_futile(const struct mesh_flow *flow)
{
	return atomic_load_explicit(&flow->has_posted, memory_order_relaxed) &&
	       !mesh_flow_has_carried(flow);
}

/** Counts a write that was posted. transmit_lock held. */
MESH_HOLDS(transmit)
void mesh_flow_posted(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
		      uint64_t now_ns);

/**
 * Queues @waiter, to be resumed in FIFO order by a poll after a completion on @flow, if there is
 * room. If it waits already, it keeps its place. Any lock except transmit_lock may be held.
 */
void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter);

/** Removes @waiter from the queue. domain->lock held, so that no resume() is running. */
MESH_HOLDS(domain)
void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * Counts a completed write. domain->lock held.
 *
 * @size: bytes of the write; @posted_ns: when it was posted; @arrived: true if the completion means
 * that the peer has the data
 */
MESH_HOLDS(domain)
void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns, bool arrived);

/**
 * The same for a write that has not completed and is no longer waited for: its room becomes free.
 * The caller must not count it again when it completes.
 */
MESH_HOLDS(domain)
void mesh_flow_forget(struct mesh_domain *domain, struct mesh_flow *flow, size_t size);

/** Forgets what was measured, because the link was away. domain->lock held. */
MESH_HOLDS(domain)
void mesh_flow_restart(struct mesh_domain *domain, struct mesh_flow *flow);

/**
 * Resumes the waiters for this poll, and those for room where there is some. If the next poll has
 * to look again, also without a completion, it leaves domain->has_waiting set. domain->lock held.
 */
MESH_HOLDS(domain)
void mesh_waiters_resume(struct mesh_domain *domain);

#endif
