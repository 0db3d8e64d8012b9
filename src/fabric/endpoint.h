/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint.h - the endpoint of a domain: who may enter it, the thread for posts that connect, and
 * another endpoint in its place.
 */
#ifndef MESH_FABRIC_ENDPOINT_H
#define MESH_FABRIC_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>

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

/*
 * The longest that a NIC or a kernel that is there takes to answer: rdma_resolve_addr() waits so
 * long inside of libfabric, and we for the refusal of a fence's write.
 */
#define MESH_ANSWER_MS 2000

/** Makes the connector's thread take a turn. Any lock may be held; the domain has a connector. */
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
	if (domain->has_connector)
		LIST_INSERT_HEAD(&domain->in_flight, op, in_flight);
}

/** True if a post on @flow would connect. transmit_lock held. */
MESH_HOLDS(transmit)
static inline bool mesh_flow_connects(const struct mesh_domain *domain,
				      const struct mesh_flow *flow)
{
	return domain->has_connector && !flow->connected;
}

/** True if a post on @flow may have to wait inside the provider. transmit_lock held. */
MESH_HOLDS(transmit)
static inline bool mesh_flow_may_wait(const struct mesh_domain *domain,
				      const struct mesh_flow *flow)
{
	return domain->has_connector && (!flow->connected || mesh_endpoint_is_claimed(domain));
}

/*
 * Another endpoint.
 *
 * On verbs this is the fence of a link on which comms go on: with the endpoint all of its queue
 * pairs end, at once and also while the link is down, when no NIC at the other end could refuse
 * anything, and when the NIC here would repeat for seconds what is not acknowledged. After it no
 * write of a peer can arrive, and none of ours leaves. Before libfabric 1.20 it is also the only
 * means to connect again after a connection between two living processes has broken: the name of
 * the new endpoint is another one, and HELLO of the next attempt has it.
 *
 * fi_close() takes seconds while a NIC repeats what nobody answers. So the connector's thread calls
 * it, with no lock held: whoever gives the endpoint up goes on, and looks later whether it is
 * closed.
 *
 * It ends the connections of all peers on that NIC: mesh_endpoints_check().
 */

/**
 * A connection with a peer is about to be cut that may come back. Before libfabric 1.20 it cannot
 * be made again over this endpoint: what is connected stays, but the next HELLO needs another one,
 * and mesh_endpoint_is_open() closes this one.
 */
void mesh_endpoint_spend(struct mesh_domain *domain);

/**
 * Gives the endpoint up: from now on its remotes are lost, and nothing more is posted there. The
 * connector's thread closes it: then all that is in flight on it ends with an error, here. After
 * that it opens another one. Idempotent until it is open again. Verbs only; process->lock held, so
 * that a HELLO names the endpoint that it has found open.
 */
void mesh_endpoint_close(struct mesh_domain *domain);

/**
 * Waits while the endpoint is being closed, up to some seconds: until then operations end, whose
 * owners must not be freed. No lock held.
 */
void mesh_endpoint_close_await(const struct mesh_domain *domain);

/**
 * True if a HELLO may name the endpoint: false from mesh_endpoint_close() on until another one is
 * open. Wakes the connector, and closes a spent one. process->lock held.
 */
bool mesh_endpoint_is_open(struct mesh_domain *domain);

/** True from mesh_endpoint_close() on until it is closed: something may still arrive over it. */
static inline bool mesh_endpoint_is_closing(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->endpoint_state, memory_order_acquire) ==
	       MESH_ENDPOINT_CLOSING;
}

#endif
