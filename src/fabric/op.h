/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - one posted libfabric operation, and the callback of its completion. */
#ifndef MESH_FABRIC_OP_H
#define MESH_FABRIC_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/fabric.h>

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
	fi_addr_t to;	       /* of a send or write */
	size_t size;	       /* bytes that arrived, of a completed receive */
	bool expected_to_fail; /* an error is not reported */
	int status;	       /* verbs: enum mesh_rdma_status of one that failed; 0: unknown */
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

#endif
