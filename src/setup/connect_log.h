/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.h - messages to the user about a connection attempt. process->lock held. */
#ifndef MESH_SETUP_CONNECT_LOG_H
#define MESH_SETUP_CONNECT_LOG_H

#include <stdint.h>

#include "setup/connecting.h"

/** Logs that there is no candidate, with every address on both sides. */
MESH_HOLDS(process)
void mesh_connect_log_no_path(const struct mesh_connect *connect);

/** Logs that the connection was given up, with the reason of the most informative peer. */
MESH_HOLDS(process)
void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms);

/** Logs once that the connection takes long. */
MESH_HOLDS(process)
void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms);

#endif
