/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_handle.c - the handle that NCCL has brought from the listener, and a connection to a
 * listener of another protocol version.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "control/peer.h"
#include "setup/connect_handle.h"
#include "setup/connect_judge.h"
#include "setup/connect_try.h"
#include "wire/protocol.h"

/*
 * For the exchange of HELLO: the listener may also be out of reach. While there are candidates that
 * were not dialled yet, one gets as long as in any other try, and no more.
 */
#define DIAL_MS 5000

int mesh_connect_handle_read(const struct mesh_process *process, const void *bytes,
			     struct mesh_handle *handle)
{
	int ret = mesh_handle_decode(bytes, handle);
	char node[MESH_NODE_NAME_MAX];
	bool foreign = ret == -EPROTONOSUPPORT;

	if (foreign)
		ret = mesh_handle_decode_foreign(bytes, handle) ? -EPROTONOSUPPORT : 0;
	if (foreign && (ret || !handle->connect_id)) {
		mesh_handle_node(bytes, node);
		mesh_warn("node %s got a handle of another version of this plugin from %s%s: it "
			  "has protocol %u, and nccl-net-mesh %s here has protocol %d. Install the "
			  "same version on all nodes",
			  process->name, *node ? "node " : "a node whose version has no name in it",
			  node, mesh_handle_protocol(bytes), mesh_version(), MESH_PROTOCOL_VERSION);
	} else if (ret) {
		mesh_warn("node %s got a handle that is not this plugin's: does every rank load "
			  "libnccl-net-mesh.so? NCCL falls back to another network silently if "
			  "the plugin cannot be loaded (NCCL_DEBUG=INFO on each rank shows it)",
			  process->name);
	}
	return ret;
}

bool mesh_connect_handle_learn(struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	bool any = false;
	int i, k;

	mesh_process_assert_locked(connect->net->process);
	for (i = 0; mesh_handle_lacks_nics(&connect->handle) && i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		for (k = 0; peer && peer->state == MESH_PEER_UP && k < peer->num_nics; k++)
			any |= mesh_handle_nic_add(&connect->handle, &peer->nics[k]);
	}
	return any;
}

/* ---- a listener of another protocol version -------------------------------------------------- */

/*
 * True if a peer has answered a HELLO that names this listener, or cannot do so. A peer may be
 * shared with a connection to another listener of that process, which its HELLO names then.
 */
MESH_HOLDS(process)
static bool is_told(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		if (peer && peer->sent_cookie == connect->handle.cookie &&
		    peer->sent_listen_id == connect->handle.listen_id &&
		    (peer->refusal || peer->state == MESH_PEER_GREETING ||
		     peer->state == MESH_PEER_UP))
			return true;
	}
	return false;
}

/* True if no dial goes on: the next try dials anew. */
MESH_HOLDS(process)
static bool is_idle(const struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (connect->dials[i].state != MESH_DIAL_DEAD)
			return false;
	}
	return connect->num_dials;
}

/* True if the deadline is over, or what is waited for now had its time. */
MESH_HOLDS(process)
static bool is_over(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t since_ms = connect->dialled ? connect->try_ms : connect->started_ms;

	return now_ms >= connect->deadline_ms || mesh_clock_elapsed_ms(since_ms, now_ms) >= DIAL_MS;
}

/* Dials the first candidates, or those that follow. Returns as mesh_connect_try_start() does. */
MESH_HOLDS(process)
static int dial(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret = connect->num_dials ? mesh_connect_try_next(connect, now_ms)
				     : mesh_connect_try_start(connect, now_ms);

	if (!ret)
		connect->dialled += connect->num_dials;
	return ret;
}

int mesh_connect_foreign_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict = MESH_VERDICT_NEXT;
	int ret = 0;

	mesh_process_assert_locked(connect->net->process);
	if (connect->num_dials)
		verdict = mesh_connect_judge(connect, now_ms);
	if (is_told(connect) || is_over(connect, now_ms) || !connect->choice.num_candidates)
		return -EPROTONOSUPPORT;
	if (is_idle(connect))
		mesh_connect_try_end(connect);
	if (!connect->num_dials ||
	    (verdict == MESH_VERDICT_NEXT && connect->dialled < connect->choice.num_candidates))
		ret = dial(connect, now_ms);
	return ret && ret != -EAGAIN ? -EPROTONOSUPPORT : 0;
}
