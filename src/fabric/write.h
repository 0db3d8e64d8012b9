/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - RMA writes to a remote, and the messages that announce them. */
#ifndef MESH_FABRIC_WRITE_H
#define MESH_FABRIC_WRITE_H

#include "base/lock.h"
#include "fabric/mr.h"
#include "fabric/op.h"
#include "fabric/remote.h"

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
