/* SPDX-License-Identifier: Apache-2.0 */
/* connect_relay.h - a connection to a node without a common link: over relays (relay_try.h). */
#ifndef MESH_SETUP_CONNECT_RELAY_H
#define MESH_SETUP_CONNECT_RELAY_H

#include <stdbool.h>

#include "base/lock.h"
#include "setup/connecting.h"
#include "setup/relay_try.h"

/**
 * Makes connect->relay, if relays may be used.
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

/** The comm, which NCCL gets, begins to look for what is better than what it has. */
MESH_HOLDS(process)
void mesh_connect_relay_keep(struct mesh_connect *connect);

/**
 * While candidates are tried: if none comes up for some seconds, or for a short time where an
 * earlier connection has waited (dead_routes.h), looks for relays as well. Once those are ready,
 * they take the candidates' place.
 */
MESH_HOLDS(process)
void mesh_connect_detour(struct mesh_connect *connect, uint64_t now_ms);

/**
 * While an OPEN of relays that have taken the candidates' place has no answer for some seconds:
 * tries the candidates again beside it. Returns true if they are ready: then the caller drops the
 * comm that has asked, and calls mesh_connect_detour_leave().
 */
MESH_HOLDS(process)
bool mesh_connect_detour_beside(struct mesh_connect *connect, uint64_t now_ms);

/** The candidates, which are up, take the relays' place. */
MESH_HOLDS(process)
void mesh_connect_detour_leave(struct mesh_connect *connect);

/** Releases the peers of a try whose relay has refused; routed candidates get their turn again. */
MESH_HOLDS(process)
void mesh_connect_relay_end(struct mesh_connect *connect);

/** Frees what it has of relays. */
MESH_HOLDS(process)
void mesh_connect_relay_close(struct mesh_connect *connect);

#endif
