/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - what is in flight to another endpoint, for all comms, and who waits for room. */
#ifndef MESH_FABRIC_FLOW_H
#define MESH_FABRIC_FLOW_H

#include "fabric/domain.h"
#include "fabric/pace.h"

/*
 * The way from this domain to another endpoint, shared by all that use it: what is in flight there,
 * how fast it goes, and who waits for room.
 */
struct mesh_flow {
	LIST_ENTRY(mesh_flow) entry; /* domain->flows; transmit_lock, as all but the pace */
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX]; /* the endpoint's */
	int users;			      /* remotes */
	/* Posting is under transmit_lock, completing under lock. */
	struct mesh_pace pace;
	uint64_t silent_ms;		 /* when a fence was last not answered; 0: it was */
	int num_buffers;		 /* message buffers taken and not given back */
	struct mesh_waiter_list waiters; /* for room; the one that waits longest first */
	_Atomic(bool) has_waiters;
	_Atomic(int) num_claims; /* waiters whose claim is not 0: nobody goes past them */
	_Atomic(struct mesh_waiter *) turn; /* whose resume() is running for the room; or NULL */
};

/*
 * Somebody who could not post. It waits for one of two things at a time: the next poll, where the
 * provider or the buffers had no room, or a completion on a flow that is full.
 */
struct mesh_waiter {
	TAILQ_ENTRY(mesh_waiter) entry;
	bool queued;		/* for the next poll; under transmit_lock */
	struct mesh_flow *flow; /* or for room there; under transmit_lock */
	size_t claim; /* bytes that it posts there next; 0: it asks whether that is best by now */
	void (*resume)(struct mesh_waiter *waiter); /* domain->lock held, transmit_lock not */
};

/**
 * The flow to the endpoint of this name (MESH_ENDPOINT_NAME_MAX bytes at most), counted once more.
 * NULL without memory. transmit_lock held.
 */
struct mesh_flow *mesh_flow_get(struct mesh_domain *domain, const void *name, size_t name_len);
/** Counts it off. transmit_lock held. */
void mesh_flow_put(struct mesh_domain *domain, struct mesh_flow *flow);
/** Frees what is left of them. */
void mesh_flows_close(struct mesh_domain *domain);
/** Takes a waiter out of the line of its flow, if it stands in one. transmit_lock held. */
void mesh_flow_leave(struct mesh_domain *domain, struct mesh_waiter *waiter);

/** Asks to be called from the next poll. Idempotent. Any lock but transmit_lock may be held. */
void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * True if @bytes may be posted on @flow now: there is room, and nobody who came before @waiter has
 * a claim to it. An estimate, without a lock.
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
 * Joins the line of @flow: to be called when it is our turn and there is room. A second call only
 * changes the claim. The same locks.
 *
 * @claim: bytes that are to be posted here: whoever comes later leaves them that room. 0: another
 *	   flow is the better one, unless that has changed by the next completion
 */
void mesh_flow_wait(struct mesh_domain *domain, struct mesh_flow *flow, struct mesh_waiter *waiter,
		    size_t claim);

/** Takes both requests back. domain->lock held, so that no resume() is running. */
void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter);

/**
 * Counts a completed write, and gives those who wait for room their turn, the longest wait first.
 * domain->lock held, no comm's lock.
 *
 * @size: bytes of the write; @posted_ns: when it was posted; @arrived: the completion means that
 * the peer has it, so that it shows the latency
 */
void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns, bool arrived);

/**
 * The same for a write that has not ended and is not waited for any more: others have its room.
 * When it does end, it must not be counted again.
 */
void mesh_flow_forget(struct mesh_domain *domain, struct mesh_flow *flow, size_t size);

/** Calls those who wait for the next poll. domain->lock held. */
void mesh_waiters_resume(struct mesh_domain *domain);

#endif
