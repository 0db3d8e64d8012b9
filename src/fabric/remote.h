/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - the endpoints of peers, and the messages and RMA writes that are sent to them. */
#ifndef MESH_FABRIC_REMOTE_H
#define MESH_FABRIC_REMOTE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "fabric/buffer.h"
#include "fabric/domain.h"
#include "fabric/flow.h"
#include "fabric/mr.h"

/* The endpoint of one peer, as libfabric's address. */
struct mesh_remote {
	LIST_ENTRY(mesh_remote) entry;	  /* domain->remotes */
	LIST_ENTRY(mesh_remote) ended;	  /* domain->ended, once closed: freed when unused */
	TAILQ_ENTRY(mesh_remote) waiting; /* domain->backlogged, while backlog is not empty */
	struct mesh_buffer_list backlog;  /* messages that the provider has not accepted yet */
	fi_addr_t fi_addr;
	struct mesh_flow *flow;
	bool lost;	     /* messages to it fail; under transmit_lock */
	uint32_t generation; /* domain->generation when it was opened */
	/* The connector is to send something to it; with domain->at_work it does so. */
	bool wants_connection;
	int connect_error; /* how that ended for the first of the backlog; 0: it did not fail */
	uint64_t tried_ms; /* when it ended last */
	/*
	 * The TCP port from which the peer's provider connected, as the peer reported it; 0 if
	 * unknown. It distinguishes the peer's socket from those of other processes at the same
	 * address. Under transmit_lock.
	 */
	uint16_t dialled_from;
};

/**
 * True if the remote was opened for an endpoint that was given up since. Nothing of it arrives,
 * unless mesh_endpoint_is_closing(), which is to be asked after this.
 */
static inline bool mesh_remote_is_outdated(const struct mesh_domain *domain,
					   const struct mesh_remote *remote)
{
	return remote->generation !=
	       atomic_load_explicit(&domain->generation, memory_order_acquire);
}

/** Opens the remote whose fi_getname() returned @name. It has one user, which closes it. */
int mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
		     struct mesh_remote **remote);

/**
 * Closes it; messages in its backlog fail with -ECONNRESET. It is freed when none of the operations
 * that were posted to its endpoint can complete any more. NULL is allowed.
 */
void mesh_remote_close(struct mesh_domain *domain, struct mesh_remote *remote);

/** Frees those that are left, and their flows: the domain is being closed. */
void mesh_remotes_free(struct mesh_domain *domain);

/**
 * Marks the remote as lost: its backlog fails with -ECONNRESET (now, in this thread; the caller
 * holds domain->lock), and so do later messages to it.
 */
MESH_HOLDS(domain)
void mesh_remote_lose(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * Takes a free buffer for a message to @remote. NULL: try again after the next poll (see
 * mesh_domain_wait). A stalled remote may hold at most half of the free buffers, so that the others
 * always find some.
 */
struct mesh_buffer *mesh_remote_buffer_get(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * Sends buffer->size bytes at buffer->bytes, and takes ownership of the buffer. If the provider is
 * busy, the message waits in the remote's backlog, in order. buffer->sent is always called, later.
 */
void mesh_remote_send(struct mesh_buffer *buffer);

/**
 * Sends a message that is short enough for the provider to copy it at once: no buffer, no
 * completion.
 *
 * @size: bytes; more than domain->inject_max are refused
 *
 * Returns 0 if it is sent, in the sense of a completed message; -EAGAIN: use mesh_remote_send().
 */
int mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote, const void *bytes,
		       size_t size);

/**
 * The connector's thread, no lock held: connects with one remote that wants it. Returns false if
 * there is none, or if another thread has claimed the endpoint, which then wakes the connector.
 */
bool mesh_remote_connect_next(struct mesh_domain *domain);

/** Posts the messages of all backlogs until the provider is busy. domain->lock held. */
MESH_HOLDS(domain)
void mesh_backlogs_resume(struct mesh_domain *domain);

struct mesh_write {
	const void *data;
	size_t size;	    /* bytes, at most domain->segment_max */
	struct mesh_mr *mr; /* covers the data */
	uint64_t address;   /* at the remote, from its grant */
	uint64_t key;
	uint64_t immediate;	    /* unless the provider has none, or a message follows */
	struct mesh_buffer *behind; /* this message: sent directly behind the write; or NULL */
	bool silent;		    /* nothing announces it: neither an immediate nor a message */
	/* Request FI_DELIVERY_COMPLETE; a plain completion on tcp means "written to the socket". */
	bool delivery;
	uint64_t now_ns; /* for the flow's pace */
};

/* mesh_domain_write() has posted the write, but not yet what is to follow it. */
#define MESH_WRITE_ALONE 1

/**
 * Starts an RMA write, with its immediate or with the message behind it.
 *
 * The provider keeps the order of the two on one connection only. So if it does not accept the
 * message at once, the caller keeps that buffer, and sends it when the write has completed.
 *
 * Returns 0 if @op will complete; MESH_WRITE_ALONE: the same, but write->behind is still to be
 * sent; -EAGAIN if the provider is busy: try again after the next poll; another negative errno if
 * the write is impossible. On failure @op and write->behind are unchanged.
 */
int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op);

/**
 * Starts an RMA write with these libfabric flags, even to a lost remote. Returns as
 * mesh_domain_write(). transmit_lock held, or the endpoint claimed.
 */
int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op);

#endif
