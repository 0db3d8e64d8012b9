/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_internal.h - what the files of src/fabric share with each other only. */
#ifndef MESH_FABRIC_FABRIC_INTERNAL_H
#define MESH_FABRIC_FABRIC_INTERNAL_H

#include "fabric/domain.h"

/** Tries again what the provider did not take before. domain->lock held. */
void mesh_waiting_resume(struct mesh_domain *domain);

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

/* The smallest there is; the kernel locks whole ones. */
#define MESH_PAGE_BYTES 4096

/**
 * Sees to it that a registration ends when it is closed, and says so if it cannot. Before the
 * first mesh_mr_open(). Returns 0, or a negative errno if nothing can be registered at all.
 */
int mesh_mrs_prepare(struct mesh_domain *domain);

/** Allocates the buffers, registers them and posts the receives. */
int mesh_buffers_open(struct mesh_domain *domain);
void mesh_buffers_close(struct mesh_domain *domain);

/**
 * Starts an RMA write with these libfabric flags, even to a lost remote. Returns as
 * mesh_domain_write(). transmit_lock held.
 */
int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op);

/**
 * mesh_remotes_fence() of one on tcp: disconnects the provider's sockets with the remote. Takes
 * domain->lock. Returns how many, or a negative errno.
 */
int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote);

/** mesh_remotes_fence() of one on verbs: to be stepped to its end. NULL without memory. */
struct mesh_verbs_fence *mesh_verbs_fence_begin(struct mesh_domain *domain,
						struct mesh_remote *remote);

/**
 * Ends the connection with the remote, in steps between polls. A bounded time; takes domain->lock.
 *
 * Returns -EAGAIN until it is over, and the fence gone: 0 when the connection has ended; -ENOTCONN
 * if there seems to be none; -ETIMEDOUT if the peer's NIC does not answer, so that it ends when our
 * NIC gives up; another negative errno.
 */
int mesh_verbs_fence_step(struct mesh_verbs_fence *fence);

/**
 * Says why a connection of verbs broke; its other operations are only flushed.
 *
 * @op: the send or write that told, NULL for a receive
 * @status: of enum ibv_wc_status
 */
void mesh_breakage_report(struct mesh_domain *domain, const struct mesh_op *op, int status);

/** Lets the host program fork without harm to registered memory. Before any is registered. */
void mesh_verbs_fork_protect(void);

/** Bounds the time that a stranger's handshake can hold up the endpoint. */
void mesh_handshakes_limit(struct mesh_domain *domain);

/** Posts again the receives that the provider did not take. domain->lock held. */
void mesh_receives_resume(struct mesh_domain *domain);

/** Hands a message, or the immediate of a write, to its sink. domain->lock held. */
void mesh_sink_message(struct mesh_domain *domain, const struct mesh_message_header *header,
		       const void *payload);
void mesh_sink_written(struct mesh_domain *domain, uint64_t immediate);

#endif
