/* SPDX-License-Identifier: Apache-2.0 */
/* connect_relay.h - a connection to a node without a common link: finds relays, and asks them. */
#ifndef MESH_SETUP_CONNECT_RELAY_H
#define MESH_SETUP_CONNECT_RELAY_H

#include <stdbool.h>

#include "base/lock.h"
#include "setup/connecting.h"
#include "wire/frame.h"

/**
 * Makes connect->relay, if relays may be used.
 *
 * Returns 0; -ENETUNREACH if there are none for this job; -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_connect_relay_begin(struct mesh_connect *connect);

/** Looks for relays, and connects to them. True when they are up: they are connect->peers. */
MESH_HOLDS(process)
bool mesh_connect_relay_is_ready(struct mesh_connect *connect, uint64_t now_ms);

/** True if no neighbour runs a process of this job, and had the time to start one. */
MESH_HOLDS(process)
bool mesh_connect_relay_is_hopeless(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Makes connect->comm with its first path, which leads through @peer. Returns 0 or a negative
 * errno.
 */
MESH_HOLDS(process)
int mesh_connect_relay_comm_open(struct mesh_connect *connect, struct mesh_peer *peer,
				 uint64_t key);

/** Sends OPEN for the comm's latest path. */
MESH_HOLDS(process)
void mesh_connect_relay_request(struct mesh_connect *connect, const struct mesh_path *path);

/** The relay of the latest path has refused, or is lost: it is not asked again for a while. */
MESH_HOLDS(process)
void mesh_connect_relay_refused(struct mesh_connect *connect, enum mesh_refusal refusal);

/** Writes what is known of the relays into @text of @size bytes, for a message. Returns @text. */
MESH_HOLDS(process)
const char *mesh_connect_relay_text(const struct mesh_connect *connect, char *text, size_t size);

#endif
