/* SPDX-License-Identifier: Apache-2.0 */
/*
 * domain.h - one NIC's libfabric domain, endpoint, address vector and completion queue.
 *
 * There is one domain for each NIC, provider and process, on tcp further ones for long lines. All
 * comms on that NIC share them.
 *
 * Locks. The polling thread holds `lock`, which covers reading the completion queue, every callback
 * made from there, and the posting of receives. Its holder polls for all threads. `transmit_lock`
 * is the innermost lock: free buffers, backlogs, waiters, and the posting of messages and writes.
 * `mrs_lock` covers the table of registrations. It is not held while one is made or closed: on
 * verbs the kernel pins the memory meanwhile, which takes a second for some gigabytes. On tcp the
 * two others are held then, and nothing is pinned: libfabric 1.17's net reads its table of keys
 * while it polls, and sometimes while it posts, without a lock of its own (fixed in 1.19), and a
 * change during that read breaks a transfer.
 */
#ifndef MESH_FABRIC_DOMAIN_H
#define MESH_FABRIC_DOMAIN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "wire/message.h"
#include "wire/protocol.h"

struct mesh_buffer;
struct mesh_fence;
struct mesh_flow;
struct mesh_mr;
struct mesh_remote;
struct mesh_sink;
struct mesh_waiter;

TAILQ_HEAD(mesh_buffer_list, mesh_buffer);

/* Completions that one read of the queue returns. */
#define MESH_POLL_ENTRIES 16

/*
 * On tcp the provider copies a write into the socket, with a lock of its own held that each poll
 * needs, and we hold a comm's lock. No further write is posted after so many bytes until the next
 * poll begins, so that no other comm waits for long: 1 MiB takes about a quarter of a millisecond.
 */
#define MESH_COPY_MAX ((size_t)1 << 20)
/*
 * The largest usual write there, in bytes. A write takes some 5 us more than its bytes, so smaller
 * ones carry less (docs/performance.md).
 */
#define MESH_COPY_SEGMENT ((size_t)1 << 20)
/* The smallest page size; the kernel locks whole pages. */
#define MESH_PAGE_BYTES 4096

/* Verbs: its endpoint. domain_open.c alone changes it. */
enum mesh_endpoint_state {
	MESH_ENDPOINT_OPEN,
	MESH_ENDPOINT_SPENT,   /* a peer cannot connect again: mesh_endpoint_spend() */
	MESH_ENDPOINT_CLOSING, /* nothing more is posted; the connector's thread closes it */
	MESH_ENDPOINT_CLOSED,  /* that thread has claimed the place, and opens another one */
	MESH_ENDPOINT_STATES
};

/*
 * One posted libfabric operation. It is embedded in the object that it belongs to, which must live
 * until complete() was called. complete() is called exactly once, with domain->lock held.
 */
struct mesh_op {
	struct fi_context2 context; /* libfabric's, must be first: it comes back as op_context */
	/* @error: 0, or a negative errno */
	void (*complete)(struct mesh_op *op, int error);
	/*
	 * Orders the poster's stores before the poller's loads. The provider's own locks do that,
	 * too, but a thread sanitizer cannot see them.
	 */
	_Atomic(uint32_t) handed_over;
	fi_addr_t to;		       /* of a send or write */
	size_t size;		       /* bytes that arrived, of a completed receive */
	bool expected_to_fail;	       /* an error is not reported */
	LIST_ENTRY(mesh_op) in_flight; /* verbs: domain->in_flight; a send or write */
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

struct mesh_domain {
	struct mesh_lock lock; /* order: process, mrs, domain, comm, transmit */
	struct mesh_lock mrs_lock;
	struct mesh_lock transmit_lock; /* innermost */
	const struct mesh_nic *nic;
	int dev;  /* index of the NIC */
	int lane; /* on tcp a NIC may have several domains: 0 is the first */
	enum mesh_provider_id provider;

	struct mesh_log_last *failure; /* while it is being opened; else NULL */

	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	/* For a thread that sleeps until this domain has to be polled: poll.h. */
	struct fid_cq *ready_cq;
	_Atomic(int) ready_fd; /* -1: there is none */
	struct fid_ep *endpoint;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
	size_t name_len;
	_Atomic(uint16_t) port;		 /* of the endpoint's name, host order */
	size_t segment_max;		 /* bytes of the largest RMA write */
	size_t inject_max;		 /* bytes of the largest message that needs no buffer */
	struct mesh_log_limit breakages; /* lines about failed operations; under lock */
	struct mesh_log_limit receives;	 /* and about those that cannot be posted; under lock */
	struct mesh_log_limit bad_names; /* endpoint names of peers; under transmit_lock */
	/*
	 * Of the immediate that an RMA write carries: 64, 32 or 0. On tcp;ofi_rxm it is 0, because
	 * libfabric (1.17 to 2.6 at least) crashes the receiver if a sender dies in the middle of a
	 * write with immediate (rxm_cq.c, rxm_handle_comp_error: NULL op_context).
	 */
	int immediate_bits;
	uint64_t send_flags;	/* for every message */
	uint64_t delivery_flag; /* in addition, for a write that completes when it is delivered */

	/* Buffers: one slab, with one registration if the provider needs it. */
	size_t payload_max; /* bytes of payload in a message */
	uint8_t *slab;
	struct mesh_mr *slab_mr;
	void *slab_desc; /* its local descriptor, or NULL */
	struct mesh_buffer *receive_buffers;
	struct mesh_buffer *send_buffers;
	int num_receive_buffers;
	int num_receives MESH_GUARDED_BY(domain); /* of them, the first that are in use */
	struct mesh_buffer_list free_buffers MESH_GUARDED_BY(transmit); /* transmit_lock */
	int num_free_buffers MESH_GUARDED_BY(transmit);			/* transmit_lock */
	TAILQ_HEAD(, mesh_remote) backlogged MESH_GUARDED_BY(transmit); /* transmit_lock */
	TAILQ_HEAD(, mesh_waiter) waiters MESH_GUARDED_BY(transmit);	/* FIFO; transmit_lock */
	LIST_HEAD(, mesh_remote) remotes MESH_GUARDED_BY(transmit);	/* transmit_lock */
	LIST_HEAD(, mesh_remote) ended MESH_GUARDED_BY(transmit); /* closed, but not freed yet */
	LIST_HEAD(, mesh_flow) flows MESH_GUARDED_BY(transmit);	  /* transmit_lock */
	int num_flows MESH_GUARDED_BY(transmit);		  /* transmit_lock */
	_Atomic(bool) has_waiting;   /* a poll has to look at backlogged or waiters */
	_Atomic(uint64_t) copied;    /* bytes of writes since the poll copied_in began; tcp only */
	_Atomic(uint64_t) copied_in; /* the number of that poll; both are estimates */
	/* Verbs: a thread for posts that connect (endpoint.h). */
	bool has_connector;
	pthread_t connector;
	sem_t connector_wake;
	_Atomic(bool) connector_ends;
	_Atomic(bool) claimed; /* by such a post: set with lock and transmit_lock held */
	/* To which it is sending something: that one is not freed; transmit_lock. */
	struct mesh_remote *at_work MESH_GUARDED_BY(transmit);
	/*
	 * Verbs: the sends and writes that the endpoint has; transmit_lock held, or the endpoint
	 * claimed. How often the endpoint was given up to end them: written with transmit_lock
	 * held. While it is closed it stays claimed (endpoint.h).
	 */
	LIST_HEAD(, mesh_op) in_flight;
	_Atomic(uint32_t) generation;
	_Atomic(enum mesh_endpoint_state) endpoint_state;
	uint64_t reopened_ms; /* the last attempt that failed; the connector's thread */

	LIST_HEAD(, mesh_mr) mrs MESH_GUARDED_BY(mrs); /* registrations (mr.c); under mrs_lock */
	uint64_t mr_flags;			       /* for each of them */

	struct fi_cq_data_entry completions[MESH_POLL_ENTRIES] MESH_GUARDED_BY(
		domain);	     /* of the poll that runs; under lock */
	_Atomic(uint64_t) polls;     /* number of polls: shows whether any thread polls */
	_Atomic(uint64_t) strangers; /* messages and writes without a sink (buffer.h) */
	_Atomic(bool) broken;	     /* its queue cannot be read: no operation completes */
	struct mesh_buffer_list
		unposted MESH_GUARDED_BY(domain); /* receives to post again; under lock */
	/* Their ids have to fit into an immediate. The next id only grows: they are reused late. */
	struct mesh_sink *sinks[MESH_COMM_IDS] MESH_GUARDED_BY(domain);
	uint32_t next_sink MESH_GUARDED_BY(domain);
	/* Fences that the connector is to post; fences without a caller. Both under lock. */
	LIST_HEAD(, mesh_fence) fences;
	LIST_HEAD(, mesh_fence) abandoned;
};

MESH_LOCK_FUNCTIONS(mrs, mesh_domain, mrs_lock)
MESH_LOCK_FUNCTIONS(domain, mesh_domain, lock)
MESH_LOCK_FUNCTIONS(transmit, mesh_domain, transmit_lock)

struct mesh_domain_options {
	const struct mesh_nic *nic; /* outlives the domain */
	int dev;
	int lane;			/* as struct mesh_domain's */
	enum mesh_provider_id provider; /* to use; NONE: the best */
	size_t payload_max;		/* bytes of the largest message payload */
	struct mesh_port_range ports;	/* of the endpoint, where its provider listens on TCP */
	/* Why it could not be opened last, which is not logged again; NULL: each failure is. */
	struct mesh_log_last *failure;
};

/**
 * Opens the domain of one NIC and posts its receives.
 *
 * Returns 0, or a negative errno after a WARN line with the cause and the remedy, unless that is
 * the line in @options->failure.
 */
int mesh_domain_open(const struct mesh_domain_options *options, struct mesh_domain **domain);

/** Closes it. No thread may use it or its objects afterwards; NULL is allowed. */
void mesh_domain_close(struct mesh_domain *domain);

#endif
