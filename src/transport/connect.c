/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - makes a sending comm: chooses the paths, tries them, says why none works. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mesh/base/clock.h>
#include <mesh/base/log.h>
#include <mesh/transport/connect.h>
#include <mesh/transport/node.h>

/* A candidate that is not up after this gives way to the next; it has its turn again. */
#define CANDIDATE_MS 3000
/* One that failed gives way after this. */
#define FAILED_MS 250
/* A connection that takes longer is mentioned, once. */
#define SLOW_MS 5000
/* Refused by every candidate for so long: the process is gone, more time will not help. */
#define REFUSED_MS 3000
#define ENDPOINTS_TEXT_MAX 384

static const uint8_t connect_may_follow[MESH_CONNECT_STATES] = {
	[MESH_CONNECT_PEER] = 1 << MESH_CONNECT_SENT, /* the path broke before ACCEPT came */
	[MESH_CONNECT_SENT] = 1 << MESH_CONNECT_PEER,
	[MESH_CONNECT_DONE] = 1 << MESH_CONNECT_SENT,
	[MESH_CONNECT_FAILED] = 1 << MESH_CONNECT_PEER | 1 << MESH_CONNECT_SENT,
};

static void connect_state_set(struct mesh_connect *connect, enum mesh_connect_state state)
{
	bool legal = connect_may_follow[state] & 1 << connect->state;

	mesh_lock_assert_held(&connect->net->node->lock);
	assert(legal);
	(void)legal;
	connect->state = state;
}

static void comm_drop(struct mesh_connect *connect)
{
	struct mesh_frame frame;

	if (!connect->comm)
		return;
	if (connect->state == MESH_CONNECT_DONE) {
		/* The listener has made its end already. */
		memset(&frame, 0, sizeof(frame));
		frame.comm.to_comm = connect->comm->paths[0].remote_id;
		mesh_peer_send(connect->peer, &frame, MESH_FRAME_CLOSE);
	}
	mesh_comm_free(connect->comm);
	connect->comm = NULL;
}

static void candidate_leave(struct mesh_connect *connect)
{
	comm_drop(connect);
	if (connect->peer)
		mesh_peer_put(connect->peer);
	connect->peer = NULL;
}

static void connect_fail(struct mesh_connect *connect, int error)
{
	candidate_leave(connect);
	connect_state_set(connect, MESH_CONNECT_FAILED);
	connect->error = error;
}

/* ---- in words -------------------------------------------------------------------------- */

/* Every address on both sides: whoever reads it sees which cable is missing. */
static void no_path_log(struct mesh_connect *connect)
{
	struct mesh_node *node = connect->net->node;
	const struct mesh_handle *handle = &connect->handle;
	const struct mesh_path_choice *choice = &connect->choice;
	char local[ENDPOINTS_TEXT_MAX], remote[ENDPOINTS_TEXT_MAX];

	mesh_endpoints_text(node->endpoints, node->num_endpoints, node, local, sizeof(local));
	mesh_endpoints_text(handle->endpoints, handle->num_endpoints, NULL, remote, sizeof(remote));
	if (choice->provider_differs)
		mesh_warn(
			"node %s cannot connect to node id %016llx: on their common subnet we use "
			"the provider %s and it uses %s. Set NCCL_MESH_PROVIDER to the same on all "
			"nodes. Here: %s; there: %s",
			node->name, (unsigned long long)handle->node_id,
			mesh_provider_id_text(node->endpoints[choice->differing.local].provider),
			mesh_provider_id_text(handle->endpoints[choice->differing.remote].provider),
			local, remote);
	else
		mesh_warn(
			"node %s cannot connect to node id %016llx: no common subnet. Here: %s; "
			"there: %s. Is there a cable between the two, with addresses of one subnet "
			"at both ends?",
			node->name, (unsigned long long)handle->node_id, local, remote);
}

static void timeout_log(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_node *node = connect->net->node;
	struct mesh_peer *peer = connect->peer;
	char local[MESH_ADDR_TEXT_MAX], text[MESH_PEER_TEXT_MAX], why[MESH_PEER_REASON_MAX];
	struct mesh_domain *domain = peer->domain;

	if (peer->state == MESH_PEER_CONNECTING && !peer->reason[0])
		snprintf(why, sizeof(why),
			 "no answer from TCP port %u: is the cable in, the peer's link up, and no "
			 "firewall between?",
			 peer->control_port);
	else
		snprintf(why, sizeof(why), "%.200s",
			 peer->reason[0] ? peer->reason : "it does not answer our request");
	mesh_warn(
		"node %s gave up connecting from %s (%s) to %s after %llu ms (%d path%s tried): %s",
		node->name, domain->nic->netdev, mesh_addr_text(&domain->nic->source, local),
		mesh_peer_text(peer, text), (unsigned long long)(now_ms - connect->started_ms),
		connect->choice.num_candidates, connect->choice.num_candidates == 1 ? "" : "s",
		why);
}

static void slow_log(struct mesh_connect *connect, uint64_t now_ms)
{
	char text[MESH_PEER_TEXT_MAX];

	if (connect->slow_told || now_ms - connect->started_ms < SLOW_MS)
		return;
	connect->slow_told = true;
	mesh_warn("still connecting from %s to %s (%s); giving up in %llu s",
		  connect->peer->domain->nic->netdev, mesh_peer_text(connect->peer, text),
		  connect->peer->reason[0] ? connect->peer->reason : "no answer yet",
		  (unsigned long long)(connect->deadline_ms - now_ms) / 1000);
}

/* ---- candidates ------------------------------------------------------------------------ */

static int candidate_enter(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_node *node = connect->net->node;
	const struct mesh_handle *handle = &connect->handle;
	struct mesh_path_candidate pair = connect->choice.candidates[connect->current];
	struct mesh_domain *domain = mesh_node_domain(node, &node->endpoints[pair.local]);

	connect->candidate_ms = now_ms;
	return mesh_peer_get(node, domain, &handle->endpoints[pair.remote], handle->control_port,
			     handle->listen_id, handle->cookie, &connect->peer);
}

static void candidate_next(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret;

	if (!connect->peer->first_refused_ms)
		connect->refused_ms = 0;
	else if (!connect->refused_ms)
		connect->refused_ms = connect->peer->first_refused_ms;
	candidate_leave(connect);
	connect->current = (connect->current + 1) % connect->choice.num_candidates;
	ret = candidate_enter(connect, now_ms);
	if (ret)
		connect_fail(connect, ret);
}

static void request_send(struct mesh_connect *connect)
{
	char text[MESH_PEER_TEXT_MAX];
	struct mesh_frame frame;
	int ret;

	ret = mesh_comm_open(connect->net->node, connect->net, true, connect->peer, &connect->comm);
	if (ret) {
		mesh_warn("cannot make a connection to %s: %s", mesh_peer_text(connect->peer, text),
			  strerror(-ret));
		connect_fail(connect, ret);
		return;
	}
	memset(&frame, 0, sizeof(frame));
	frame.comm.cookie = connect->handle.cookie;
	frame.comm.listen_id = connect->handle.listen_id;
	frame.comm.comm = connect->comm->paths[0].sink.id;
	frame.comm.token = connect->comm->paths[0].sink.token;
	connect_state_set(connect, MESH_CONNECT_SENT);
	mesh_peer_send(connect->peer, &frame, MESH_FRAME_CONNECT);
}

/* The peer's own word that it will not talk to us, or no process there: time does not change it. */
static bool refused_for_good(const struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_peer *peer = connect->peer;
	uint64_t since_ms = connect->refused_ms ? connect->refused_ms : peer->first_refused_ms;

	if (peer->refusal)
		return true;
	return peer->first_refused_ms && now_ms - since_ms > REFUSED_MS;
}

/* True if the next candidate has its turn. A peer that failed keeps us for a moment: no rush. */
static bool candidate_is_spent(const struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_peer *peer = connect->peer;
	uint64_t age_ms = now_ms - connect->candidate_ms;

	if (peer->state == MESH_PEER_LOST || peer->refusal)
		return age_ms > FAILED_MS;
	if (connect->choice.num_candidates == 1)
		return false;
	return age_ms > (peer->state == MESH_PEER_RETRY ? FAILED_MS : CANDIDATE_MS);
}

static void peer_wait(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_peer *peer = connect->peer;
	bool alone = connect->choice.num_candidates == 1;

	if (peer->state == MESH_PEER_UP) {
		request_send(connect);
		return;
	}
	if (refused_for_good(connect, now_ms) &&
	    (alone || now_ms - connect->started_ms > REFUSED_MS)) {
		timeout_log(connect, now_ms);
		connect_fail(connect, peer->refusal ? -EPROTO : -ECONNREFUSED);
		return;
	}
	slow_log(connect, now_ms);
	if (candidate_is_spent(connect, now_ms))
		candidate_next(connect, now_ms);
}

void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	mesh_lock_assert_held(&connect->net->node->lock);
	if (connect->state >= MESH_CONNECT_DONE)
		return;
	if (now_ms >= connect->deadline_ms) {
		timeout_log(connect, now_ms);
		connect_fail(connect, -ETIMEDOUT);
		return;
	}
	if (connect->state == MESH_CONNECT_SENT && connect->peer->state == MESH_PEER_LOST) {
		connect_state_set(connect, MESH_CONNECT_PEER);
		candidate_next(connect, now_ms);
	}
	if (connect->state == MESH_CONNECT_PEER)
		peer_wait(connect, now_ms);
}

void mesh_connect_accepted(struct mesh_connect *connect, uint32_t remote_id, uint32_t remote_token)
{
	struct mesh_path *path = &connect->comm->paths[0];

	path->remote_id = remote_id;
	path->remote_token = remote_token;
	connect_state_set(connect, MESH_CONNECT_DONE);
}

void mesh_connect_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	char text[MESH_PEER_TEXT_MAX];

	mesh_warn("%s refused a connection: %s", mesh_peer_text(connect->peer, text),
		  mesh_refusal_text(refusal));
	connect_fail(connect, -ECONNREFUSED);
}

void mesh_connect_free(struct mesh_connect *connect)
{
	mesh_lock_assert_held(&connect->net->node->lock);
	candidate_leave(connect);
	LIST_REMOVE(connect, entry);
	free(connect);
}

/* ---- NCCL's call ----------------------------------------------------------------------- */

static struct mesh_connect *connect_find(struct mesh_net *net, uint64_t id,
					 const struct mesh_handle *handle)
{
	struct mesh_connect *connect;

	LIST_FOREACH(connect, &net->node->connects, entry) {
		/* The id comes from the buffer, so it is believed only with the right cookie. */
		if (connect->id == id && connect->net == net &&
		    connect->handle.cookie == handle->cookie)
			return connect;
	}
	return NULL;
}

static int connect_start(struct mesh_net *net, int dev, const struct mesh_handle *handle,
			 struct mesh_connect **started)
{
	struct mesh_node *node = net->node;
	struct mesh_path_hints hints = {
		.local_nic = dev,
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == node->node_id,
	};
	struct mesh_connect *connect = calloc(1, sizeof(*connect));
	int ret;

	if (!connect)
		return -ENOMEM;
	connect->net = net;
	connect->handle = *handle;
	connect->started_ms = mesh_clock_ms();
	connect->deadline_ms = connect->started_ms + node->config.connect_timeout_s * 1000;
	mesh_path_choose(node->endpoints, node->num_endpoints, handle->endpoints,
			 handle->num_endpoints, &hints, &connect->choice);
	if (!connect->choice.num_candidates) {
		no_path_log(connect);
		free(connect);
		return -ENETUNREACH;
	}
	connect->id = ++node->next_connect_id;
	ret = candidate_enter(connect, connect->started_ms);
	if (ret) {
		free(connect);
		return ret;
	}
	LIST_INSERT_HEAD(&node->connects, connect, entry);
	*started = connect;
	return 0;
}

static int handle_read(const struct mesh_node *node, const void *bytes, struct mesh_handle *handle)
{
	int ret = mesh_handle_decode(bytes, handle);

	if (ret == -EPROTONOSUPPORT)
		mesh_warn(
			"node %s got a handle of another version of this plugin: install the same "
			"version on all nodes",
			node->name);
	else if (ret)
		mesh_warn(
			"node %s got a handle that is not this plugin's: does every rank load "
			"libnccl-net-mesh.so? NCCL falls back to another network without a word if "
			"the plugin cannot be loaded (NCCL_DEBUG=INFO on each rank tells)",
			node->name);
	return ret;
}

/* Hands over the comm, or the error, and forgets the connect. */
static int connect_finish(struct mesh_connect *connect, struct mesh_comm **comm)
{
	int ret = 0;

	if (connect->state == MESH_CONNECT_DONE) {
		*comm = connect->comm;
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
	struct mesh_node *node = net->node;
	struct mesh_connect *connect;
	struct mesh_handle handle;
	int ret;

	*comm = NULL;
	ret = handle_read(node, handle_bytes, &handle);
	if (ret)
		return ret;
	mesh_node_poll(node);
	mesh_lock_take(&node->lock);
	connect = connect_find(net, handle.connect_id, &handle);
	if (!connect) {
		ret = mesh_node_start(node);
		if (!ret)
			ret = connect_start(net, dev, &handle, &connect);
		if (ret)
			goto unlock;
		mesh_handle_connect_id_set(handle_bytes, connect->id);
	}
	mesh_connect_advance(connect, mesh_clock_ms());
	ret = connect_finish(connect, comm);
	if (ret)
		mesh_handle_connect_id_set(handle_bytes, 0);
unlock:
	mesh_lock_release(&node->lock);
	if (*comm)
		mesh_comm_path_log(*comm);
	return ret;
}
