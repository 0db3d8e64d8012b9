/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.h - what a connection in the making says to the user. process->lock held. */
#ifndef MESH_SETUP_CONNECT_LOG_H
#define MESH_SETUP_CONNECT_LOG_H

#include <stdint.h>

#include "setup/connecting.h"

/** No candidate: every address on both sides. */
void mesh_connect_log_no_path(const struct mesh_connect *connect);

/** Given up: why, as the peer says that tells most. */
void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms);

/** Said once when it takes long. */
void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms);

#endif
