/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - per-destination flow control: window, rate, FIFO of waiters; shared by all comms. */
#ifndef MESH_FABRIC_FLOW_H
#define MESH_FABRIC_FLOW_H

#include "base/lock.h"
#include "fabric/domain.h"
#include "fabric/pace.h"

/*
 * The traffic from this domain to another endpoint, for all comms together: the bytes in flight,
 * the measured rate, and the waiters for room in the window.
 */
struct mesh_flow {
	LIST_ENTRY(mesh_flow) entry; /* domain->flows; transmit_lock, as all but the pace */
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX]; /* the endpoint's */
	int users;			      /* remotes */
	/* Posting is under transmit_lock, completing under lock. */
	struct mesh_pace pace;
	uint64_t silent_ms; /* time (ms) of the last fence that timed out; 0 after a success */
	/*
	 * The provider has accepted something since the last error: a post does not connect. Used
	 * where the domain has a connector.
	 */
	bool connected;
	int num_buffers;		 /* message buffers taken and not put back */
	struct mesh_waiter_list waiters; /* for room; FIFO */
	_Atomic(bool) has_waiters;
	_Atomic(int) num_claims; /* waiters whose claim is not 0: no later post overtakes them */
	_Atomic(struct mesh_waiter *) turn; /* whose resume() is running for the room; or NULL */
};

/*
 * A user that could not post. It waits for one of two events at a time: the next poll, if the
 * provider or the buffers had no room, or a completion on a flow whose window is full.
 */
struct mesh_waiter {
	TAILQ_ENTRY(mesh_waiter) entry;
	bool queued;		/* for the next poll; under transmit_lock */
	struct mesh_flow *flow; /* or for room there; under transmit_lock */
	size_t claim; /* bytes to post there; 0: it only checks the choice of flow again */
	void (*resume)(struct mesh_waiter *waiter); /* domain->lock held, transmit_lock not */
};

/**
 * Returns the flow to the endpoint of this name (MESH_ENDPOINT_NAME_MAX bytes at most) and counts
 * one user more. NULL if memory is short. transmit_lock held.
 */
MESH_HOLDS(transmit)
struct mesh_flow *mesh_flow_get(struct mesh_domain *domain, const void *name, size_t name_len);
/** Counts one user less; frees the flow after the last one. transmit_lock held. */
MESH_HOLDS(transmit)
void mesh_flow_put(struct mesh_domain *domain, struct mesh_flow *flow);
/** Frees the remaining flows of the domain. */
void mesh_flows_close(struct mesh_domain *domain);
/** Removes a waiter from the queue of its flow, if it is in one. transmit_lock held. */
MESH_HOLDS(transmit)
void mesh_flow_leave(struct mesh_domain *domain, struct mesh_waiter *waiter);

/** Queues @waiter for the next poll. Idempotent. Any lock except transmit_lock may be held. */
void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * True if @bytes may be posted on @flow now: there is room, and no earlier waiter claims it. An
 * estimate, without a lock.
 */
static inline bool mesh_flow_has_room(const struct mesh_flow *flow,
				      const struct mesh_waiter *waiter, size_t bytes)
{
	if (atomic_load_explicit(&flow->num_claims, memory_order_relaxed) &&
	    atomic_load_explicit(&flow->turn, memory_order_relaxed) != waiter)
		return false;
	return mesh_pace_has_room(&flow->pace, bytes);
}

/**
 * Queues @waiter on @flow, to be resumed in FIFO order when there is room. A second call only
 * changes the claim. Any lock except transmit_lock may be held.
 *
 * @claim: bytes to be posted here: later posts leave this room free. 0: another flow is better now;
 *	   the waiter only checks the choice again at the next completion
 */
void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter,
		    size_t claim);

/** Removes @waiter from both queues. domain->lock held, so that no resume() is running. */
MESH_HOLDS(domain)
void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * Counts a completed write, and resumes the waiters for room in FIFO order. domain->lock held, no
 * comm's lock.
 *
 * @size: bytes of the write; @posted_ns: when it was posted; @arrived: true if the completion means
 * that the peer has the data, so that it shows the latency
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

/** Resumes the waiters for the next poll. domain->lock held. */
MESH_HOLDS(domain)
void mesh_waiters_resume(struct mesh_domain *domain);

#endif
