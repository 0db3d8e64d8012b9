/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect.c - makes a sending comm: finds the candidates, tries them, asks the listener for one
 * path after the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/version.h"
#include "control/peer_send.h"
#include "setup/connect.h"
#include "setup/connect_log.h"
#include "setup/connect_try.h"
#include "setup/openings.h"
#include "setup/start.h"
#include "transport/close.h"
#include "transport/comm_open.h"
#include "transport/path_find.h"
#include "transport/path_state.h"
#include "wire/protocol.h"

/* Lines about connections that find no room, here or there, within MESH_LOG_LIMIT_PERIOD_MS. */
#define FULL_LINES 8
/*
 * NCCL's thread advances an attempt in each call. The engine does so after this time, and after a
 * 16th of the attempt's age: most attempts that NCCL no longer asks about are old.
 */
#define ADVANCE_MIN_MS 20
#define ADVANCE_MAX_MS 500
#define ADVANCE_PART 16
/*
 * NCCL may never ask for the result: its tables up to v10 forget an attempt that they gave up. The
 * result is freed after the first time, and after the second one once more: if this process was
 * stopped meanwhile, NCCL had no chance to ask.
 */
#define ABANDONED_MS 60000
#define LAST_CALL_MS 5000

static const uint8_t connect_may_follow[MESH_CONNECT_STATES] = {
	[MESH_CONNECT_PEERS] = 1 << MESH_CONNECT_SENT, /* a path broke before all were accepted */
	[MESH_CONNECT_SENT] = 1 << MESH_CONNECT_PEERS,
	[MESH_CONNECT_DONE] = 1 << MESH_CONNECT_SENT,
	[MESH_CONNECT_FAILED] = 1 << MESH_CONNECT_PEERS | 1 << MESH_CONNECT_SENT,
};

MESH_HOLDS(process)
static void connect_state_set(struct mesh_connect *connect, enum mesh_connect_state state)
{
	bool legal = connect_may_follow[state] & 1 << connect->state;

	mesh_process_assert_locked(connect->net->process);
	assert(legal);
	(void)legal;
	connect->state = state;
}

/* Withdraws @comm; NULL: gives the whole connection up. */
MESH_HOLDS(process)
static void withdraw_send(const struct mesh_connect *connect, struct mesh_peer *peer,
			  const struct mesh_comm *comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.withdraw.cookie = connect->handle.cookie;
	frame.withdraw.listen_id = connect->handle.listen_id;
	frame.withdraw.comm_key = comm ? comm->key : 0;
	frame.withdraw.final = !comm;
	mesh_peer_send(peer, &frame, MESH_FRAME_WITHDRAW);
}

MESH_HOLDS(process)
static void comm_drop(struct mesh_connect *connect)
{
	if (!connect->comm)
		return;
	/* The listener may have its end already, and an ACCEPT may be in flight. */
	withdraw_send(connect, mesh_path_peer(&connect->comm->paths[0]), connect->comm);
	mesh_comm_free(connect->comm);
	connect->comm = NULL;
	connect->num_accepted = 0;
}

/* Notifies the accept() on the other node over each connection that exists. */
MESH_HOLDS(process)
static void give_up_send(const struct mesh_connect *connect)
{
	struct mesh_peer *peer;
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		peer = connect->peers[i];
		if (peer->state == MESH_PEER_GREETING || peer->state == MESH_PEER_UP)
			withdraw_send(connect, peer, NULL);
	}
}

MESH_HOLDS(process)
static void connect_fail(struct mesh_connect *connect, int error)
{
	comm_drop(connect);
	give_up_send(connect);
	mesh_connect_try_end(connect);
	connect_state_set(connect, MESH_CONNECT_FAILED);
	connect->error = error;
}

MESH_HOLDS(process)
static void try_next(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret;

	comm_drop(connect);
	ret = mesh_connect_try_next(connect, now_ms);
	if (ret)
		connect_fail(connect, ret);
}

/* ---- one path after the other ----------------------------------------------------------- */

/* Asks for the comm's latest path. */
MESH_HOLDS(process)
static void request_send(struct mesh_connect *connect)
{
	const struct mesh_comm *comm = connect->comm;
	const struct mesh_path *path = &comm->paths[comm->num_paths - 1];
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = connect->handle.cookie;
	frame.connect.comm_key = comm->key;
	frame.connect.listen_id = connect->handle.listen_id;
	frame.connect.comm = path->sink.id;
	frame.connect.token = path->sink.token;
	frame.connect.path = (uint8_t)(comm->num_paths - 1);
	frame.connect.num_paths = (uint8_t)comm->wanted_paths;
	mesh_peer_send(mesh_path_peer(path), &frame, MESH_FRAME_CONNECT);
}

/* Adds the next path to the comm, or makes the comm with its first, and asks for it. */
MESH_HOLDS(process)
static void path_request(struct mesh_connect *connect)
{
	struct mesh_log_limit *limit = &connect->net->process->limits.full;
	struct mesh_peer *peer = connect->peers[connect->num_accepted];
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	uint64_t key;
	int ret;

	if (connect->comm) {
		ret = mesh_comm_path_add(connect->comm, peer);
	} else {
		ret = mesh_random(&key, sizeof(key));
		if (!ret)
			ret = mesh_comm_open(connect->net, true, peer, key, connect->num_peers,
					     &connect->comm);
		if (!ret)
			connect->comm->opener = connect;
	}
	if (ret) {
		if (mesh_log_limit_pass(limit, FULL_LINES, mesh_clock_ms(), more))
			mesh_warn("cannot make a connection to %s: %s%s",
				  mesh_peer_text(peer, text), strerror(-ret), more);
		connect_fail(connect, ret);
		return;
	}
	request_send(connect);
}

static bool connect_awaits(const struct mesh_connect *connect, const struct mesh_path *path)
{
	return connect->state == MESH_CONNECT_SENT &&
	       path == &connect->comm->paths[connect->comm->num_paths - 1];
}

MESH_HOLDS(process)
static void connect_accepted(struct mesh_connect *connect, uint32_t remote_id,
			     uint32_t remote_token)
{
	struct mesh_path *path = &connect->comm->paths[connect->num_accepted++];

	mesh_path_accepted(path, remote_id, remote_token);
	if (connect->num_accepted == connect->comm->wanted_paths)
		connect_state_set(connect, MESH_CONNECT_DONE);
	else
		path_request(connect);
}

MESH_HOLDS(process)
static void connect_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	struct mesh_log_limit *limit = &connect->net->process->limits.full;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX] = "";

	if (refusal != MESH_REFUSAL_RESOURCES ||
	    mesh_log_limit_pass(limit, FULL_LINES, mesh_clock_ms(), more))
		mesh_warn("%s refused a connection: %s%s",
			  mesh_peer_text(connect->peers[connect->num_accepted], text),
			  mesh_refusal_text(refusal), more);
	connect_fail(connect, -ECONNREFUSED);
}

/* The attempt that waits for this path to be accepted, or NULL. */
MESH_HOLDS(process)
static struct mesh_connect *connect_of_comm(struct mesh_peer *peer, uint32_t comm)
{
	const struct mesh_path *path = mesh_comm_path_find(peer, comm);
	struct mesh_connect *connect = path ? path->comm->opener : NULL;

	return connect && connect_awaits(connect, path) ? connect : NULL;
}

void mesh_connect_accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_connect *connect = connect_of_comm(peer, frame->to_comm);

	/* Otherwise the connection was dropped meanwhile, and WITHDRAW is in flight. */
	if (connect)
		connect_accepted(connect, frame->accept.comm, frame->accept.token);
}

void mesh_connect_refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_connect *connect = connect_of_comm(peer, frame->refuse.comm);

	if (connect)
		connect_refused(connect, (enum mesh_refusal)frame->refuse.refusal);
}

/* ---- advancing -------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void peers_wait(struct mesh_connect *connect, uint64_t now_ms)
{
	if (mesh_connect_try_is_ready(connect, now_ms)) {
		mesh_connect_try_settle(connect);
		connect_state_set(connect, MESH_CONNECT_SENT);
		path_request(connect);
		return;
	}
	if (mesh_connect_try_is_refused(connect, now_ms)) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, mesh_connect_try_informative(connect)->refusal
					      ? -EPROTO
					      : -ECONNREFUSED);
		return;
	}
	mesh_connect_log_slow(connect, now_ms);
	if (mesh_connect_try_is_spent(connect, now_ms))
		try_next(connect, now_ms);
}

void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	mesh_process_assert_locked(connect->net->process);
	if (connect->state >= MESH_CONNECT_DONE)
		return;
	if (now_ms >= connect->deadline_ms) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, -ETIMEDOUT);
		return;
	}
	if (connect->state == MESH_CONNECT_SENT && mesh_comm_has_lost_path(connect->comm)) {
		connect_state_set(connect, MESH_CONNECT_PEERS);
		try_next(connect, now_ms);
	}
	if (connect->state == MESH_CONNECT_PEERS)
		peers_wait(connect, now_ms);
}

void mesh_connect_free(struct mesh_connect *connect)
{
	bool gives_up;

	mesh_process_assert_locked(connect->net->process);
	gives_up = connect->comm || connect->state < MESH_CONNECT_DONE;
	comm_drop(connect);
	if (gives_up)
		give_up_send(connect);
	mesh_connect_try_end(connect);
	mesh_engine_timer_cancel(&connect->net->process->engine, &connect->timer);
	LIST_REMOVE(connect, entry);
	LIST_REMOVE(connect, id_entry);
	free(connect);
}

/* ---- NCCL's call ----------------------------------------------------------------------- */

MESH_HOLDS(process)
static struct mesh_connect_bucket *bucket_of(struct mesh_setup *setup, uint64_t id)
{
	return &setup->connects_by_id[id % MESH_CONNECT_BUCKETS];
}

MESH_HOLDS(process)
static struct mesh_connect *connect_find(struct mesh_net *net, uint64_t id,
					 const struct mesh_handle *handle)
{
	struct mesh_connect *connect;

	LIST_FOREACH(connect, bucket_of(net->setup, id), id_entry) {
		/* The id comes from the buffer, so it is trusted only with the right cookie. */
		if (connect->id == id && connect->net == net &&
		    connect->handle.cookie == handle->cookie)
			return connect;
	}
	return NULL;
}

static uint64_t advance_pause_ms(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t pause_ms = mesh_clock_elapsed_ms(connect->started_ms, now_ms) / ADVANCE_PART;

	if (pause_ms < ADVANCE_MIN_MS)
		return ADVANCE_MIN_MS;
	return pause_ms < ADVANCE_MAX_MS ? pause_ms : ADVANCE_MAX_MS;
}

MESH_HOLDS(process)
static void connect_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_connect *connect = mesh_container_of(timer, struct mesh_connect, timer);
	struct mesh_engine *engine = &connect->net->process->engine;

	mesh_connect_advance(connect, now_ms);
	if (connect->state < MESH_CONNECT_DONE) {
		mesh_engine_timer_set(engine, timer, now_ms + advance_pause_ms(connect, now_ms));
	} else if (!connect->over_ms) {
		connect->over_ms = now_ms;
		mesh_engine_timer_set(engine, timer, now_ms + ABANDONED_MS);
	} else if (!connect->last_call) {
		connect->last_call = true;
		mesh_engine_timer_set(engine, timer, now_ms + LAST_CALL_MS);
	} else {
		mesh_connect_free(connect);
	}
}

/*
 * The paths of the NICs that would be chosen now. Only if there is none, those of the others: of
 * the management network, if it was all there was at init, and of addresses that are gone.
 */
MESH_HOLDS(process)
static void candidates_find(struct mesh_process *process, const struct mesh_handle *handle,
			    const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	struct mesh_endpoint_addr chosen[MESH_NICS_MAX];
	bool reserves = false;
	int i;

	for (i = 0; i < process->num_endpoints; i++) {
		chosen[i] = process->endpoints[i];
		if (!process->dev_reserves[chosen[i].nic])
			continue;
		chosen[i].addr.family = MESH_FAMILY_NONE; /* reaches nobody */
		reserves = true;
	}
	mesh_path_choose(chosen, process->num_endpoints, handle->endpoints, handle->num_endpoints,
			 hints, choice);
	if (reserves && !choice->num_candidates)
		mesh_path_choose(process->endpoints, process->num_endpoints, handle->endpoints,
				 handle->num_endpoints, hints, choice);
}

MESH_HOLDS(process)
static int connect_start(struct mesh_net *net, int dev, const struct mesh_handle *handle,
			 struct mesh_connect **started)
{
	struct mesh_process *process = net->process;
	struct mesh_path_hints hints = {
		.local_nic = dev,
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == process->node_id,
	};
	struct mesh_connect *connect = calloc(1, sizeof(*connect));
	int ret;

	if (!connect)
		return -ENOMEM;
	connect->net = net;
	connect->handle = *handle;
	connect->started_ms = mesh_clock_ms();
	connect->deadline_ms = connect->started_ms + process->config.connect_timeout_s * 1000;
	candidates_find(process, handle, &hints, &connect->choice);
	if (!connect->choice.num_candidates) {
		mesh_connect_log_no_path(connect);
		free(connect);
		return -ENETUNREACH;
	}
	connect->id = ++net->setup->next_connect_id;
	ret = mesh_connect_try_start(connect, connect->started_ms);
	if (ret) {
		free(connect);
		return ret;
	}
	LIST_INSERT_HEAD(&net->setup->connects, connect, entry);
	LIST_INSERT_HEAD(bucket_of(net->setup, connect->id), connect, id_entry);
	connect->timer.expired = connect_expired;
	mesh_engine_timer_set(&process->engine, &connect->timer,
			      connect->started_ms + ADVANCE_MIN_MS);
	*started = connect;
	return 0;
}

static int handle_read(const struct mesh_process *process, const void *bytes,
		       struct mesh_handle *handle)
{
	int ret = mesh_handle_decode(bytes, handle);
	char node[MESH_NODE_NAME_MAX];

	if (ret == -EPROTONOSUPPORT) {
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

/* Returns the comm, or the error, and frees the connect. */
MESH_HOLDS(process)
static int connect_finish(struct mesh_connect *connect, struct mesh_comm **comm)
{
	int ret = 0;

	if (connect->state == MESH_CONNECT_DONE) {
		*comm = connect->comm;
		(*comm)->opener = NULL;
		connect->comm = NULL;
	} else if (connect->state == MESH_CONNECT_FAILED) {
		ret = connect->error;
	} else {
		return 0;
	}
	mesh_connect_free(connect);
	return ret;
}

int mesh_net_connect(struct mesh_net *net, int dev, void *handle_bytes, struct mesh_comm **comm)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *connect;
	struct mesh_handle handle;
	int ret;

	*comm = NULL;
	ret = handle_read(process, handle_bytes, &handle);
	if (ret)
		return ret;
	mesh_process_poll(process);
	mesh_process_lock(process);
	connect = connect_find(net, handle.connect_id, &handle);
	if (!connect) {
		ret = mesh_setup_start(process);
		if (!ret)
			ret = mesh_openings_result(process, mesh_clock_ms());
		if (!ret)
			ret = connect_start(net, dev, &handle, &connect);
		if (ret == -EAGAIN)
			ret = 0; /* not ready: NCCL calls again */
		if (!connect)
			goto unlock;
		mesh_handle_connect_id_set(handle_bytes, connect->id);
	}
	mesh_connect_advance(connect, mesh_clock_ms());
	ret = connect_finish(connect, comm);
	if (ret)
		mesh_handle_connect_id_set(handle_bytes, 0);
unlock:
	mesh_process_unlock(process);
	if (*comm)
		mesh_comm_paths_log(*comm);
	return ret;
}
