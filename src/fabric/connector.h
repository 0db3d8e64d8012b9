/* SPDX-License-Identifier: Apache-2.0 */
/* connector.h - a thread of the domain for posts that connect, which take long on verbs. */
#ifndef MESH_FABRIC_CONNECTOR_H
#define MESH_FABRIC_CONNECTOR_H

#include "base/lock.h"
#include "fabric/domain.h"
#include "fabric/flow.h"

/*
 * ofi_rxm connects when something is first sent to an endpoint. On verbs it then resolves the
 * address, for up to 2 s if nothing answers, and holds the lock of its endpoint meanwhile, which
 * each send and each poll on that NIC need. So a thread that connects claims the endpoint before:
 * polls are skipped, sends wait in their backlogs, and no thread waits with a lock held. Only that
 * NIC stands still; the engine and set-up on other NICs go on. As a rule it does not for long:
 * before anything connects, HELLO has come from that address over TCP, so the kernel knows the
 * peer's link address. A fence's write is posted in the same way (fence.c).
 */
struct mesh_connector;

/*
 * The longest that a NIC or a kernel that is there takes to answer: rdma_resolve_addr() waits so
 * long inside of libfabric, and we for the refusal of a fence's write.
 */
#define MESH_ANSWER_MS 2000

/**
 * Starts the thread. Without one, posts never wait: on the other providers.
 *
 * @turn: called in the thread after mesh_connector_wake(), no lock held
 *
 * Returns 0 or a negative errno.
 */
int mesh_connector_start(struct mesh_domain *domain, void (*turn)(struct mesh_domain *domain));

/** Ends the thread; waits for the post that it is making. Does nothing if there is none. */
void mesh_connector_stop(struct mesh_domain *domain);

/** Makes the thread take a turn. Any lock may be held; the domain has a connector. */
void mesh_connector_wake(struct mesh_domain *domain);

/**
 * Claims the endpoint for a post that may connect. No lock held; takes domain->lock.
 *
 * Returns false if another thread has claimed it.
 */
bool mesh_endpoint_claim(struct mesh_domain *domain);

/** Gives it back, and wakes the connector. No lock held. */
void mesh_endpoint_release(struct mesh_domain *domain);

/** True while a thread has claimed the endpoint: no other one may enter it. */
static inline bool mesh_endpoint_is_claimed(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->claimed, memory_order_acquire);
}

/** The provider has accepted a send or write. transmit_lock held, or the endpoint claimed. */
static inline void mesh_op_posted(struct mesh_domain *domain, struct mesh_op *op)
{
	if (domain->connector)
		LIST_INSERT_HEAD(&domain->in_flight, op, in_flight);
}

/** True if a post on @flow would connect. transmit_lock held. */
MESH_HOLDS(transmit)
static inline bool mesh_flow_connects(const struct mesh_domain *domain,
				      const struct mesh_flow *flow)
{
	return domain->connector && !flow->connected;
}

/** True if a post on @flow may have to wait inside the provider. transmit_lock held. */
MESH_HOLDS(transmit)
static inline bool mesh_flow_may_wait(const struct mesh_domain *domain,
				      const struct mesh_flow *flow)
{
	return domain->connector && (!flow->connected || mesh_endpoint_is_claimed(domain));
}

#endif
