/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - per-destination flow control: window, rate, waiters; shared by all comms. */
#ifndef MESH_FABRIC_FLOW_H
#define MESH_FABRIC_FLOW_H

#include "base/lock.h"
#include "base/log.h"
#include "fabric/domain.h"
#include "fabric/pace.h"

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
	int mtu;	   /* bytes, of the peer's NIC; 0 if unknown */
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

/**
 * Finds the flow to the endpoint of this name (domain->name_len bytes), or begins it, and counts
 * one user more. transmit_lock held. Returns 0 or a negative errno.
 */
MESH_HOLDS(transmit)
int mesh_flow_get(struct mesh_domain *domain, const void *name, struct mesh_flow **flow);

/** True while something of it may complete: its remotes are kept until then. transmit_lock held. */
static inline bool mesh_flow_is_busy(const struct mesh_flow *flow)
{
	return flow->num_buffers || mesh_pace_in_flight(&flow->pace);
}

/**
 * Counts one user less; after the last one frees the flow, and removes its address. transmit_lock
 * held.
 */
MESH_HOLDS(transmit)
void mesh_flow_put(struct mesh_domain *domain, struct mesh_flow *flow);
/** Frees the remaining flows of the domain. */
void mesh_flows_close(struct mesh_domain *domain);

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
