/* SPDX-License-Identifier: Apache-2.0 */
/* connect_relay.h - a connection to a node without a common link: over relays (relay_try.h). */
#ifndef MESH_SETUP_CONNECT_RELAY_H
#define MESH_SETUP_CONNECT_RELAY_H

#include <stdbool.h>

#include "base/lock.h"
#include "setup/connecting.h"
#include "setup/relay_try.h"

/**
 * Makes connect->relay, if relays may be used, and it does not exist.
 *
 * Returns 0; -ENETUNREACH if there are none for this job; -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_connect_relay_begin(struct mesh_connect *connect);

/** True if no neighbour runs a process of this job, and had the time to start one. */
MESH_HOLDS(process)
bool mesh_connect_relay_is_hopeless(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Makes connect->comm with its first path: to @peer, or through it, if it is a relay. Returns 0 or
 * a negative errno.
 */
MESH_HOLDS(process)
int mesh_connect_comm_open(struct mesh_connect *connect, struct mesh_peer *peer, uint64_t key);

/**
 * True if relays are to be looked for: no dial of the try is up, and each had some seconds, more if
 * the other process has accepted a TCP connection, or had them for an earlier connection.
 */
MESH_HOLDS(process)
bool mesh_connect_relay_is_due(const struct mesh_connect *connect, uint64_t now_ms);

/** Says that the candidates have let nothing through, and relays lead there. */
MESH_HOLDS(process)
void mesh_connect_relay_log(const struct mesh_connect *connect, uint64_t now_ms);

#endif
