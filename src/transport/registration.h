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
 * Makes what is missing for the path behind the comm's last one, then enters that path. The engine
 * calls it while NCCL registers and closes memory. process->lock held.
 *
 * Returns 0, or a negative errno: nothing has changed then.
 */
MESH_HOLDS(process)
int mesh_registrations_extend(struct mesh_comm *comm);

/**
 * Registers what was registered before @path moved to another NIC anew, for that one. Does nothing
 * if it has not moved. The path carries nothing. process->lock held.
 *
 * Returns 0, or a negative errno: then the path cannot be used, and this may be called again.
 */
MESH_HOLDS(process)
int mesh_registrations_move(struct mesh_comm *comm, int path);

/** Closes a registration; if requests still use it, the comm is ended first. NULL is allowed. */
void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration);

/** Closes the registrations that NCCL left open, which may take long. No lock held. */
void mesh_registrations_close(struct mesh_comm *comm);

#endif
