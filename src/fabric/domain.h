/* SPDX-License-Identifier: Apache-2.0 */
/*
 * domain.h - one NIC's libfabric domain, endpoint, address vector and completion queue.
 *
 * There is one domain for each NIC and process. All comms on that NIC share it.
 *
 * Locks. `lock` belongs to whoever polls: it covers reading the completion queue, every callback
 * made from there, and the posting of receives. Whoever holds it polls for all. `transmit_lock` is
 * the innermost lock: free buffers, backlogs, waiters, and the posting of messages and writes.
 * Registrations change under lock, and on tcp under both: libfabric 1.17's net reads its table of
 * keys while it polls, and at times while it posts, without a lock of its own (fixed in 1.19), and
 * a change then kills a transfer. On verbs posting goes on meanwhile: pinning memory takes long.
 */
#ifndef MESH_FABRIC_DOMAIN_H
#define MESH_FABRIC_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "base/lock.h"
#include "fabric/pace.h"
#include "nic/nic.h"
#include "nic/provider_id.h"
#include "wire/wire.h"

TAILQ_HEAD(mesh_buffer_list, mesh_buffer);
TAILQ_HEAD(mesh_waiter_list, mesh_waiter);

struct mesh_domain;
struct mesh_mr;

/*
 * One posted libfabric operation. It lives inside the object that it belongs to and must stay
 * there until complete() was called, which happens exactly once, with domain->lock held.
 */
struct mesh_op {
	struct fi_context2 context; /* libfabric's, must be first: it comes back as op_context */
	/* @error: 0, or a negative errno */
	void (*complete)(struct mesh_op *op, int error);
	/*
	 * Orders what the poster wrote before what the poller reads. The provider's own locks do
	 * that as well, but neither the C standard nor a thread sanitizer knows of them.
	 */
	_Atomic(uint32_t) handed_over;
	fi_addr_t to;	       /* of a send or write */
	bool expected_to_fail; /* an error is no news */
};

/** Before an operation is posted. */
static inline void mesh_op_hand_over(struct mesh_op *op)
{
	atomic_store_explicit(&op->handed_over, 1, memory_order_release);
}

/** When its completion is read. */
static inline void mesh_op_take_back(struct mesh_op *op)
{
	atomic_load_explicit(&op->handed_over, memory_order_acquire);
}

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

/* Another node's endpoint, as one peer of this domain uses it. */
struct mesh_remote {
	LIST_ENTRY(mesh_remote) entry;	  /* domain->remotes */
	TAILQ_ENTRY(mesh_remote) waiting; /* domain->backlogged, while backlog is not empty */
	struct mesh_buffer_list backlog;  /* messages that the provider did not take yet */
	fi_addr_t fi_addr;
	struct mesh_flow *flow;
	bool lost;   /* nothing is sent to it any more; under transmit_lock */
	bool closed; /* freed once its backlog is empty; under transmit_lock */
	/*
	 * The peer's own TCP port of the provider's connection that it dialled, 0 if it said none:
	 * tells its socket from those of other processes at the same address. Under transmit_lock.
	 */
	uint16_t dialled_from;
	int mtu; /* bytes, of the NIC over there, 0 if it is not known; under transmit_lock */
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
};

/* A message on its way out, or a posted receive. Room for the largest message. */
struct mesh_buffer {
	struct mesh_op op;
	struct mesh_domain *domain;
	TAILQ_ENTRY(mesh_buffer) entry; /* domain->free_buffers or remote->backlog */
	struct mesh_remote *remote;
	struct mesh_flow *flow; /* the remote's, which may end before the buffer comes back */
	size_t size;		/* bytes to send */
	uint8_t *bytes;
	/*
	 * Called once after mesh_buffer_send(), domain->lock held, before the buffer is reused.
	 * After an error it must not send to the same remote again.
	 */
	void (*sent)(struct mesh_buffer *buffer, int error);
	void *owner; /* the caller's */
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

/*
 * Whoever can be addressed by messages and writes: a comm's path, or a peer while it greets. The
 * domain keeps a table of them; a message names its sink by id and token.
 */
struct mesh_sink {
	uint32_t id;	/* table index in the lowest MESH_IMMEDIATE_COMM_BITS, a generation above */
	uint32_t token; /* random */
	/* Both with domain->lock held; the payload is valid during the call. */
	void (*message)(struct mesh_sink *sink, const struct mesh_message_header *header,
			const void *payload);
	/* A peer's RMA write has been placed; NULL if none is expected. */
	void (*written)(struct mesh_sink *sink, const struct mesh_immediate *immediate);
};

struct mesh_domain {
	struct mesh_lock lock;		/* order: node, domain, comm, transmit */
	struct mesh_lock transmit_lock; /* innermost */
	const struct mesh_nic *nic;
	int dev; /* index of the NIC */
	enum mesh_provider_id provider;

	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *endpoint;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
	size_t name_len;
	uint16_t port;	    /* of the endpoint's name, host order */
	size_t segment_max; /* bytes of the largest RMA write */
	size_t inject_max;  /* bytes of the largest message that needs no buffer */
	/*
	 * RMA writes carry their immediate. Not so on tcp;ofi_rxm: libfabric (1.17 to 2.6 at
	 * least) crashes the receiver when a sender dies in the middle of a write with immediate
	 * (rxm_cq.c, rxm_handle_comp_error: NULL op_context). There a WRITTEN message follows.
	 */
	bool immediates;
	bool sizes_travel;	/* what announces a write has room for the size of its message */
	uint64_t send_flags;	/* for every message */
	uint64_t write_flags;	/* for every RMA write */
	uint64_t delivery_flag; /* and for one that is complete when it is delivered */

	/* Buffers: one slab, one registration where the provider wants one. */
	size_t payload_max; /* bytes of payload in a message */
	uint8_t *slab;
	struct mesh_mr *slab_mr;
	struct mesh_buffer *receive_buffers;
	struct mesh_buffer *send_buffers;
	int num_receive_buffers;
	struct mesh_buffer_list free_buffers; /* transmit_lock */
	int num_free_buffers;		      /* transmit_lock */
	TAILQ_HEAD(, mesh_remote) backlogged; /* transmit_lock */
	struct mesh_waiter_list waiters;      /* transmit_lock */
	LIST_HEAD(, mesh_remote) remotes;     /* transmit_lock */
	LIST_HEAD(, mesh_flow) flows;	      /* transmit_lock */
	_Atomic(bool) has_waiting;	      /* backlogged or waiters may not be empty */

	LIST_HEAD(, mesh_mr) mrs; /* registrations (mr.c); under lock */
	uint64_t mr_flags;	  /* for each of them */

	_Atomic(uint64_t) polls;     /* how often somebody polled: tells whether anybody does */
	_Atomic(uint64_t) strangers; /* messages and writes that belonged to nobody */
	bool receive_warned;	     /* a failing post was reported; under lock */
	_Atomic(bool) broken;	     /* its queue cannot be read: nothing will complete any more */
	struct mesh_buffer_list unposted;	/* receives to post again; under lock */
	struct mesh_sink *sinks[MESH_COMM_IDS]; /* under lock */
	uint32_t next_sink;			/* under lock; only grows, so ids are reused late */
};

struct mesh_domain_options {
	const struct mesh_nic *nic; /* outlives the domain */
	int dev;
	enum mesh_provider_id provider; /* wanted; NONE: the best */
	size_t payload_max;		/* bytes of the largest message payload */
};

/**
 * Opens the domain of one NIC and posts its receives.
 *
 * Returns 0, or a negative errno after a WARN line that says what failed and what to do.
 */
int mesh_domain_open(const struct mesh_domain_options *options, struct mesh_domain **domain);

/** Closes it. Nobody may use it or anything from it any more; NULL is allowed. */
void mesh_domain_close(struct mesh_domain *domain);

/**
 * Makes progress, unless another thread is at it. Never waits.
 *
 * Returns true if this thread polled.
 */
bool mesh_domain_poll(struct mesh_domain *domain);

/** As mesh_domain_poll() for a caller who holds domain->lock. */
void mesh_domain_poll_locked(struct mesh_domain *domain);

/** Makes another endpoint known, by what its fi_getname returned. Closed by its one user. */
int mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
		     struct mesh_remote **remote);

/** Ends the use; messages that still wait end with -ECONNRESET. NULL is allowed. */
void mesh_remote_close(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * Gives up the remote: its backlog ends with -ECONNRESET (now, in this thread; the caller holds
 * domain->lock), and later messages to it fail.
 */
void mesh_remote_lose(struct mesh_domain *domain, struct mesh_remote *remote);

/** Notes what the remote says of its NIC's MTU, in bytes: an error may have to be explained. */
void mesh_remote_mtu_set(struct mesh_domain *domain, struct mesh_remote *remote, int mtu);

/**
 * Writes why the first message to a remote that TCP reaches did not come through into @text
 * (MESH_RDMA_ERROR_MAX bytes); returns @text.
 *
 * @port: of the endpoint
 * @error: how the message ended, a negative errno; 0 if there was just no answer
 */
const char *mesh_remote_silence_explain(struct mesh_domain *domain, struct mesh_remote *remote,
					uint16_t port, int error, char *text);

/**
 * A free buffer for a message to @remote, or NULL: ask again after the next poll (see
 * mesh_domain_wait). A remote that takes nothing any more gets no more buffers than it leaves
 * free, so that the others always find some.
 */
struct mesh_buffer *mesh_buffer_get(struct mesh_domain *domain, struct mesh_remote *remote);

/** Gives back a buffer that was not sent. */
void mesh_buffer_put(struct mesh_buffer *buffer);

/**
 * Sends buffer->bytes, buffer->size of them, and takes the buffer. What the provider does not
 * take at once waits in the remote's backlog, in order. buffer->sent is always called, later.
 */
void mesh_buffer_send(struct mesh_buffer *buffer);

/**
 * Sends a message that is short enough for the provider to copy it at once: no buffer, no
 * completion.
 *
 * @size: bytes; more than domain->inject_max are refused
 *
 * Returns 0: it is sent as much as a completed message is. -EAGAIN: send it the long way.
 */
int mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote, const void *bytes,
		       size_t size);

/**
 * Enters @sink into the table and sets its id; the caller set the rest. Takes domain->lock.
 *
 * Returns 0, or -ENOSPC if all MESH_COMM_IDS are taken.
 */
int mesh_sink_add(struct mesh_domain *domain, struct mesh_sink *sink);

/** Takes it out; afterwards none of its functions runs. domain->lock held. */
void mesh_sink_remove(struct mesh_domain *domain, struct mesh_sink *sink);

struct mesh_write {
	const void *data;
	size_t size;	    /* bytes, at most domain->segment_max */
	struct mesh_mr *mr; /* covers the data */
	uint64_t address;   /* at the remote, as its grant said */
	uint64_t key;
	uint64_t immediate;
	bool delivery; /* complete when delivered; else on tcp when the socket has it */
	uint32_t sink_id, sink_token; /* the addressee's, for a WRITTEN message */
	uint64_t now_ns;	      /* for the flow's pace */
};

/**
 * Starts an RMA write with immediate.
 *
 * Returns 0: @op will complete. -EAGAIN: the provider is busy, try again after the next poll.
 * Another negative errno: it cannot be done. On failure @op is untouched.
 */
int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op);

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
 * @size: bytes of the write; @posted_ns: when it was posted
 */
void mesh_flow_completed(struct mesh_domain *domain, struct mesh_flow *flow, size_t size,
			 uint64_t posted_ns);

/**
 * The same for a write that has not ended and is not waited for any more: others have its room.
 * When it does end, it must not be counted again.
 */
void mesh_flow_forget(struct mesh_domain *domain, struct mesh_flow *flow, size_t size);

/** True if a message to @remote waits in its backlog. */
bool mesh_remote_backlogged(struct mesh_domain *domain, struct mesh_remote *remote);

/* One remote that is to be cut off, and the fence's notes. */
struct mesh_fence {
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_verbs_fence *verbs; /* NULL, or going on */
	int result;			/* connections that ended, or a negative errno */
};

/**
 * Makes sure that no operation of these remotes' reads or writes this process's memory any more,
 * when they could not be asked to stop. Closing a registration is not enough: libfabric's tcp looks
 * at the key only when a write begins, and goes on writing, and on verbs the same key may become
 * valid again. So the provider's own connections to that endpoint are ended; it makes new ones when
 * they are needed (verbs: from libfabric 1.20 on).
 *
 * @fences: @count of them, domain and remote set, the rest zero; they are cut off side by side
 *
 * Takes domain->lock. On verbs it waits, up to 2.5 s for all of them.
 */
void mesh_remotes_fence(struct mesh_fence *fences, int count);

/** Our TCP port of the provider's connection that we dialled to the remote; 0 if there is none. */
uint16_t mesh_remote_dialled_port(struct mesh_domain *domain, struct mesh_remote *remote);

/** The remote says that it dialled from this port of its own. */
void mesh_remote_dialled_from(struct mesh_domain *domain, struct mesh_remote *remote,
			      uint16_t port);

#endif
