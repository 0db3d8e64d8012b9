/* SPDX-License-Identifier: Apache-2.0 */
/* connect_try.h - what a connection dials together. All with process->lock held. */
#ifndef MESH_SETUP_CONNECT_TRY_H
#define MESH_SETUP_CONNECT_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "setup/connecting.h"

enum mesh_verdict {
	MESH_VERDICT_WAIT,    /* one may still come up */
	MESH_VERDICT_READY,   /* one is up, and those that may follow had time to */
	MESH_VERDICT_REFUSED, /* each one refuses, and more time will not change it */
	MESH_VERDICT_NEXT,    /* none of this try will be up soon: the next candidates */
};

/** Looks at the dials of the current try, of which there is one, and judges it. */
MESH_HOLDS(process)
enum mesh_verdict mesh_connect_judge(struct mesh_connect *connect, uint64_t now_ms);

/** True if a dial of the current try is up. */
MESH_HOLDS(process)
bool mesh_connect_is_up(const struct mesh_connect *connect);

/** True if relays are to be looked for: nothing is up, and the candidates had their time. */
MESH_HOLDS(process)
bool mesh_connect_relays_are_due(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Dials the candidates from connect->first_candidate on. Those whose domain cannot be opened are
 * removed, and those whose NIC has no carrier wait for it, also if it is open.
 *
 * Returns 0; -ENOLINK where each needs a carrier first: no try has begun; -ENODEV if no candidate
 * is left; -ENOMEM or -ENOSPC.
 */
MESH_HOLDS(process)
int mesh_connect_try_start(struct mesh_connect *connect, uint64_t now_ms);

/** Ends the dials. */
MESH_HOLDS(process)
void mesh_connect_try_end(struct mesh_connect *connect);

/** Tries the next candidates, or the same again if there are no others. The same errors. */
MESH_HOLDS(process)
int mesh_connect_try_next(struct mesh_connect *connect, uint64_t now_ms);

/** Begins again with the best candidates; peers of both tries stay. The same errors. */
MESH_HOLDS(process)
int mesh_connect_try_again(struct mesh_connect *connect, uint64_t now_ms);

/** Dials pair @i of the try over this lane as well. The connection may do without it. */
MESH_HOLDS(process)
void mesh_connect_try_lane(struct mesh_connect *connect, int i, int lane, uint64_t now_ms);

/** Keeps what is up and not much slower than the fastest. */
MESH_HOLDS(process)
void mesh_connect_try_settle(struct mesh_connect *connect);

/** True if there are links that may give the comm a path later. */
MESH_HOLDS(process)
bool mesh_connect_try_may_grow(const struct mesh_connect *connect);

/** Why the comm's path @i was chosen, for the log. */
MESH_HOLDS(process)
enum mesh_path_reason mesh_connect_try_reason(const struct mesh_connect *connect, int i);

/**
 * The peer that explains best why there is no connection yet: it refused, failed or is silent.
 * NULL: no domain of the try is open.
 */
MESH_HOLDS(process)
const struct mesh_peer *mesh_connect_try_informative(const struct mesh_connect *connect);

/** Asks for the latest path of the connection's comm. */
MESH_HOLDS(process)
void mesh_connect_request(struct mesh_connect *connect);

/** Withdraws @comm; NULL: gives the whole connection up. process->lock held. */
MESH_HOLDS(process)
void mesh_connect_withdraw(const struct mesh_connect *connect, struct mesh_peer *peer,
			   const struct mesh_comm *comm);

/** Notifies the accept() on the other node over each connection that exists. */
MESH_HOLDS(process)
void mesh_connect_give_up(const struct mesh_connect *connect);

#endif
