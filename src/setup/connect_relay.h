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

/**
 * The comm, which NCCL gets, keeps what it needs to get another route, if it has relays. Later
 * connections to the node know from now on whether relays with RDMA were awaited in vain.
 */
MESH_HOLDS(process)
void mesh_connect_relay_keep(struct mesh_connect *connect);

/**
 * True while candidates that are ready do not become paths yet: this try is of routed ones without
 * RDMA, no routed one with RDMA has its turn later, and relays with RDMA on each hop go before
 * them. That is over when they refuse, or do not answer, for 10 s; after 0.3 s where an earlier
 * connection has waited in vain (dead_routes.h); after a third of the time to connect in any case;
 * at once where none lead to the node.
 */
MESH_HOLDS(process)
bool mesh_connect_awaits_rdma(struct mesh_connect *connect, uint64_t now_ms);

/** For how many milliseconds the candidates may have to wait so, at most. */
uint64_t mesh_connect_awaits_rdma_ms(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * While relays with RDMA on each hop are awaited, looks for them; once they are ready, they take
 * the candidates' place.
 *
 * While candidates are tried: if all are routed, and none comes up for some seconds, or for a short
 * time where an earlier connection has waited (dead_routes.h), looks for relays as well. Once those
 * are ready, they take the candidates' place.
 */
MESH_HOLDS(process)
void mesh_connect_detour(struct mesh_connect *connect, uint64_t now_ms);

/**
 * While an OPEN of relays that have taken the candidates' place has no answer for some seconds (10
 * if they go before the candidates, 0.3 where an earlier connection has waited in vain): tries the
 * candidates again beside it. Returns true if they are ready: then the caller drops the comm that
 * has asked, and calls mesh_connect_detour_leave().
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
