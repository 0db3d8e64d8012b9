/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - RMA writes to a remote. */
#ifndef MESH_FABRIC_WRITE_H
#define MESH_FABRIC_WRITE_H

#include "fabric/mr.h"
#include "fabric/op.h"
#include "fabric/remote.h"

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

/**
 * Starts an RMA write with these libfabric flags, even to a lost remote. Returns as
 * mesh_domain_write(). transmit_lock held.
 */
int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op);

#endif
