/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.h - reads a domain's completion queue and calls the owner of each completion; explains what
 * failed; and a descriptor that is readable while there is something to do.
 */
#ifndef MESH_FABRIC_POLL_H
#define MESH_FABRIC_POLL_H

#include "base/lock.h"
#include "fabric/domain.h"

/**
 * Makes progress, unless another thread is polling, or connects (endpoint.h). Never waits.
 *
 * Returns true if this thread polled.
 */
bool mesh_domain_poll(struct mesh_domain *domain);

/**
 * Empties the queue, before and after its endpoint is closed. Unlike a poll it posts nothing that
 * waits. domain->lock held.
 *
 * With verbs no endpoint is closed before this: libfabric (1.17 to 2.6) reads the queue itself
 * while it closes a connection, and when it finds a message of its own there, by which the peer
 * returns credits, it uses the connection that it has just freed.
 *
 * @handle: false: the owners of the operations may be gone
 */
MESH_HOLDS(domain)
void mesh_domain_drain(struct mesh_domain *domain, bool handle);

/**
 * Writes into @text (MESH_RDMA_ERROR_MAX bytes) why the first message to a remote that TCP reaches
 * failed; returns @text.
 *
 * @port: of the endpoint
 * @error: how the message ended, a negative errno; 0 if the remote did not answer
 */
const char *mesh_silence_explain(const struct mesh_domain *domain, uint16_t port, int error,
				 char *text);

/**
 * Opens domain->ready_fd, for a thread that sleeps until the domain has to be polled. It is
 * readable while one of the provider's sockets has an event, and until a poll handles that. What
 * the provider completes while an operation is posted makes no event: the thread that posts has to
 * wake the one that sleeps.
 *
 * Only tcp has such a descriptor. If it cannot be had, INFO says so. Idempotent. process->lock
 * held, no domain's lock.
 */
void mesh_readiness_open(struct mesh_domain *domain);

/** Closes it. The domain's other objects but its libfabric domain may be closed already. */
void mesh_readiness_close(struct mesh_domain *domain);

/** The descriptor; -1: there is none. Any thread. */
static inline int mesh_readiness_fd(const struct mesh_domain *domain)
{
	return atomic_load(&domain->ready_fd);
}

#endif
