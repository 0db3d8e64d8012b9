/* SPDX-License-Identifier: Apache-2.0 */
/* readiness.h - a descriptor that is readable while a provider has something to do. */
#ifndef MESH_FABRIC_READINESS_H
#define MESH_FABRIC_READINESS_H

#include "fabric/domain.h"

/**
 * Opens domain->ready_fd, for a thread that sleeps until the domain has to be polled. It is
 * readable while one of the provider's sockets has an event, and until a poll handles that. What
 * the provider completes while an operation is posted makes no event: the thread that posts has to
 * wake the one that sleeps.
 *
 * Only tcp has such a descriptor. Idempotent. process->lock held, no domain's lock.
 *
 * Returns 0; -EOPNOTSUPP on another provider, or if it has failed before; another negative errno.
 */
int mesh_readiness_open(struct mesh_domain *domain);

/** Closes it. The domain's other objects but its libfabric domain may be closed already. */
void mesh_readiness_close(struct mesh_domain *domain);

/** The descriptor; -1: there is none. Any thread. */
static inline int mesh_readiness_fd(const struct mesh_domain *domain)
{
	return atomic_load(&domain->ready_fd);
}

#endif
