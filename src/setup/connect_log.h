/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.h - messages to the user about a connection attempt. process->lock held. */
#ifndef MESH_SETUP_CONNECT_LOG_H
#define MESH_SETUP_CONNECT_LOG_H

#include <stdint.h>

#include "setup/connecting.h"

/** Logs that there is no candidate, with every address on both sides. */
MESH_HOLDS(process)
void mesh_connect_log_no_path(const struct mesh_connect *connect);

/** Logs that the connection was given up, and the most informative reason. */
MESH_HOLDS(process)
void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Logs once that the connection takes long, with the reason so far, and asks the neighbours: the
 * error names them.
 */
MESH_HOLDS(process)
void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms);

/** Logs that the candidates have let nothing through, and relays lead there. */
MESH_HOLDS(process)
void mesh_connect_log_relays(const struct mesh_connect *connect, uint64_t now_ms);

/** Logs that there is no room for a connection here: @error, a negative errno. Limited. */
MESH_HOLDS(process)
void mesh_connect_log_full(const struct mesh_peer *peer, int error);

/** Logs that the peer refused a connection. Limited where it has no room. */
MESH_HOLDS(process)
void mesh_connect_log_refused(const struct mesh_peer *peer, enum mesh_refusal refusal);

#endif
