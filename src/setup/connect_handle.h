/* SPDX-License-Identifier: Apache-2.0 */
/* connect_handle.h - the handle that NCCL has brought from the listener. */
#ifndef MESH_SETUP_CONNECT_HANDLE_H
#define MESH_SETUP_CONNECT_HANDLE_H

#include "base/lock.h"
#include "control/process.h"
#include "setup/connecting.h"
#include "wire/handle.h"

/**
 * Reads a handle, which came from another process and is not trusted.
 *
 * @bytes: MESH_HANDLE_BYTES
 *
 * Returns 0, also for a handle of another protocol version that leads to its listener
 * (handle->foreign; logged once for each attempt); or a negative errno (logged).
 */
int mesh_connect_handle_read(const struct mesh_process *process, const void *bytes,
			     struct mesh_handle *handle);

/**
 * The handle had no room for all NICs of its node: adds those that only a HELLO has. process->lock
 * held. Returns true if there are any.
 */
MESH_HOLDS(process)
bool mesh_connect_handle_learn(struct mesh_connect *connect);

/**
 * Dials a listener of another protocol version, and exchanges HELLO with it, in which each names
 * its version: the connection fails, and the listener's accept() learns why.
 *
 * Returns 0 while this goes on: for some seconds with each candidate that does not answer, and not
 * beyond connect->deadline_ms. Then -EPROTONOSUPPORT.
 */
MESH_HOLDS(process)
int mesh_connect_foreign_advance(struct mesh_connect *connect, uint64_t now_ms);

#endif
