/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - RMA writes to a remote. */
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
	uint64_t immediate;
	/* Request FI_DELIVERY_COMPLETE; a plain completion on tcp means "written to the socket". */
	bool delivery;
	uint32_t sink_id, sink_token; /* the receiver's, for a WRITTEN message */
	uint64_t now_ns;	      /* for the flow's pace */
};

/**
 * Starts an RMA write with immediate.
 *
 * Returns 0 if @op will complete; -EAGAIN if the provider is busy: try again after the next poll;
 * another negative errno if the write is impossible. On failure @op is unchanged.
 */
int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op);

/**
 * Starts an RMA write with these libfabric flags, even to a lost remote. Returns as
 * mesh_domain_write(). transmit_lock held.
 */
MESH_HOLDS(transmit)
int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op);

#endif
