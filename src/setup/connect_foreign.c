/* SPDX-License-Identifier: Apache-2.0 */
/* connect_foreign.c - a connection to a listener of another protocol version. */
#include <errno.h>

#include "base/clock.h"
#include "setup/connect_foreign.h"
#include "setup/connect_try.h"

/* For opening a NIC and the exchange of HELLO: the listener may also be out of reach. */
#define DIAL_MS 5000

/*
 * True if a peer has answered a HELLO that names this listener, or cannot do so. A peer may be
 * shared with a connection to another listener of that process, which its HELLO names then.
 */
MESH_HOLDS(process)
static bool is_told(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		peer = connect->peers[i];
		if (peer->sent_cookie == connect->handle.cookie &&
		    (peer->refusal || peer->state == MESH_PEER_GREETING ||
		     peer->state == MESH_PEER_UP))
			return true;
	}
	return false;
}

/* True if each peer is refused: the next try dials anew. */
MESH_HOLDS(process)
static bool is_refused(const struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		if (!connect->peers[i]->refusal)
			return false;
	}
	return connect->num_peers;
}

int mesh_connect_foreign_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret = 0;

	mesh_process_assert_locked(connect->net->process);
	if (is_told(connect))
		return -EPROTONOSUPPORT;
	if (is_refused(connect))
		mesh_connect_try_end(connect);
	if (!connect->num_peers)
		ret = connect->choice.num_candidates ? mesh_connect_try_start(connect, now_ms)
						     : -ENETUNREACH;
	if ((ret && ret != -EAGAIN) ||
	    mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= DIAL_MS)
		return -EPROTONOSUPPORT;
	return 0;
}
