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
 * Handles what is left in the queue after its endpoint was closed. Unlike a poll it posts nothing
 * that waits. domain->lock held.
 */
MESH_HOLDS(domain)
void mesh_domain_drain(struct mesh_domain *domain);

#endif
