/* SPDX-License-Identifier: Apache-2.0 */
/* process_sockets.h - the list of this process's sockets, kept for a while. process->lock held. */
#ifndef MESH_CONTROL_PROCESS_SOCKETS_H
#define MESH_CONTROL_PROCESS_SOCKETS_H

#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"

/** The list of sockets, made again if it is older than a second. */
MESH_HOLDS(process)
const struct mesh_socket_table *mesh_process_sockets(struct mesh_process *process, uint64_t now_ms);

/** Frees the list. */
MESH_HOLDS(process)
void mesh_process_sockets_free(struct mesh_process *process);

#endif
