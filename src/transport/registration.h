/* SPDX-License-Identifier: Apache-2.0 */
/* registration.h - NCCL's memory handles: one registration for each path's domain. */
#ifndef MESH_TRANSPORT_REGISTRATION_H
#define MESH_TRANSPORT_REGISTRATION_H

#include "transport/comm.h"

/**
 * Registers host memory for the comm. May run beside send, receive and test of the same comm.
 *
 * @size: bytes, may be 0
 */
int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration);

/**
 * Registers what @path, which is about to move to @domain, needs there, beside what it has: also
 * what the path behind the comm's last one needs, which is about to be added. Where
 * that pins memory a thread does it, and has the engine look for routes when it is done
 * (process->routeless). process->lock held.
 *
 * Returns 0: the path may move; -EAGAIN: not yet, call it again; or another negative errno: it
 * cannot move there, and the next call tries it again.
 */
MESH_HOLDS(process)
int mesh_registrations_prepare(struct mesh_comm *comm, int path, struct mesh_domain *domain);

/**
 * @path has moved, and carries nothing, or it is open behind the comm's last one: from now on it
 * has what was prepared, and the comm has the path. What it had is closed, by a thread if that may
 * take long. process->lock held.
 *
 * Returns 0; -EAGAIN if NCCL has registered more since: then the path cannot be used, and may be
 * prepared and moved again; or, of a new path, -ECANCELED if NCCL closes the comm, which relies on
 * its paths.
 */
MESH_HOLDS(process)
int mesh_registrations_move(struct mesh_comm *comm, int path);

/** Closes a registration; if requests still use it, the comm is ended first. NULL is allowed. */
void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration);

/** Closes the registrations that NCCL left open, which may take long. No lock held. */
void mesh_registrations_close(struct mesh_comm *comm);

#endif
