/* SPDX-License-Identifier: Apache-2.0 */
/* poll.h - reads a domain's completion queue. */
#ifndef MESH_FABRIC_POLL_H
#define MESH_FABRIC_POLL_H

#include "base/lock.h"
#include "fabric/domain.h"

/**
 * Makes progress, unless another thread is polling, or connects (connector.h). Never waits.
 *
 * Returns true if this thread polled.
 */
bool mesh_domain_poll(struct mesh_domain *domain);

/**
 * Handles all that is in the queue, before and after its endpoint is closed. Unlike a poll it posts
 * nothing that waits. domain->lock held.
 *
 * With verbs no endpoint is closed before this, or mesh_domain_discard(): libfabric (1.17 to 2.6)
 * reads the queue itself while it closes a connection, and when it finds a message of its own
 * there, by which the peer returns credits, it uses the connection that it has just freed.
 */
MESH_HOLDS(domain)
void mesh_domain_drain(struct mesh_domain *domain);

/** The same without handling it: the owners of the operations may be gone. domain->lock held. */
MESH_HOLDS(domain)
void mesh_domain_discard(struct mesh_domain *domain);

#endif
