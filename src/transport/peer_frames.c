/* SPDX-License-Identifier: Apache-2.0 */
/* peer_frames.c - the frames of the control connection: what each one makes us do. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "fabric/provider_sockets.h"
#include "transport/comm.h"
#include "transport/connect.h"
#include "transport/counters.h"
#include "transport/cut.h"
#include "transport/link.h"
#include "transport/listener.h"
#include "transport/node.h"
#include "transport/peer.h"
#include "transport/peer_internal.h"
#include "transport/protocol.h"

/* About MTUs, within MESH_LOG_LIMIT_PERIOD_MS. */
#define MTU_LINES 8

/* ---- sending --------------------------------------------------------------------------- */

static void out_append(struct mesh_peer *peer, const void *bytes, size_t size)
{
	uint8_t *grown;

	if (peer->out_size + size > MESH_PEER_OUT_MAX ||
	    !(grown = realloc(peer->out, peer->out_size + size))) {
		mesh_peer_lose(peer, "it does not read its control connection");
		return;
	}
	memcpy(grown + peer->out_size, bytes, size);
	peer->out = grown;
	peer->out_size += size;
}

void mesh_peer_flush(struct mesh_peer *peer)
{
	ssize_t n;

	if (peer->watch.fd < 0 || !peer->out_size)
		return;
	n = send(peer->watch.fd, peer->out, peer->out_size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return; /* reading tells the same, with the reason */
	if (n > 0) {
		peer->out_size -= (size_t)n;
		memmove(peer->out, peer->out + n, peer->out_size);
	}
	mesh_engine_rewatch(&peer->node->engine, &peer->watch,
			    peer->out_size ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type)
{
	mesh_lock_assert_held(&peer->node->lock);
	if (peer->watch.fd < 0)
		return;
	out_append(peer, frame, mesh_frame_finish(frame, type));
	mesh_peer_flush(peer);
	mesh_link_sent(peer);
}

void mesh_peer_hello_send(struct mesh_peer *peer)
{
	struct mesh_node *node = peer->node;
	struct mesh_domain *domain = peer->domain;
	struct mesh_frame frame;
	struct mesh_frame_hello *hello = &frame.hello;
	struct mesh_endpoint_addr offers[MESH_NICS_MAX];
	int i;

	memset(&frame, 0, sizeof(frame));
	hello->node_id = node->node_id;
	hello->process_id = node->process_id;
	peer->told_cookie = peer->incoming ? 0 : peer->cookie;
	hello->cookie = peer->told_cookie;
	hello->listen_id = peer->incoming ? 0 : peer->listen_id;
	hello->peer_id = peer->sink.id;
	hello->peer_token = peer->sink.token;
	hello->provider = (uint8_t)domain->provider;
	hello->nic = (uint8_t)domain->dev;
	hello->name_len = (uint8_t)domain->name_len;
	memcpy(hello->endpoint_name, domain->name, domain->name_len);
	memcpy(hello->node_name, node->name, sizeof(hello->node_name));
	snprintf(hello->version, sizeof(hello->version), "%s", mesh_version());
	hello->eager_limit = (uint32_t)node->config.eager_limit_bytes;
	hello->mtu = (uint32_t)domain->nic->mtu;
	hello->num_nics = (uint8_t)mesh_node_offers(node, offers);
	for (i = 0; i < hello->num_nics; i++)
		mesh_wire_nic_encode(&offers[i], &hello->nics[i]);
	mesh_peer_send(peer, &frame, MESH_FRAME_HELLO);
}

void mesh_peer_port_send(struct mesh_peer *peer)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.comm.sent = mesh_remote_dialled_port(peer->domain, peer->remote);
	if (frame.comm.sent)
		mesh_peer_send(peer, &frame, MESH_FRAME_PORT);
}

void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = refusal;
	frame.refuse.comm = comm;
	frame.refuse.detail = refusal == MESH_REFUSAL_VERSION ? MESH_PROTOCOL_VERSION
							      : (uint32_t)peer->domain->provider;
	mesh_count_event(&peer->node->counters->refused);
	mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}

/* ---- receiving ------------------------------------------------------------------------- */

/* Why the first HELLO of a stranger is not taken; 0 if it is. */
static enum mesh_refusal hello_refusal(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	if (!mesh_listener_find(peer->node, hello->listen_id, hello->cookie))
		return MESH_REFUSAL_COOKIE;
	if (hello->provider != peer->domain->provider)
		return MESH_REFUSAL_PROVIDER;
	return 0;
}

static void hello_refuse(struct mesh_peer *peer, enum mesh_refusal refusal)
{
	mesh_peer_refuse(peer, refusal, 0);
	if (refusal == MESH_REFUSAL_COOKIE)
		mesh_peer_lose(peer,
			       "it did not know a listener of this process (another job, or a "
			       "stranger)");
	else
		mesh_peer_lose(peer, mesh_refusal_text(refusal));
}

/*
 * Takes only the port from the peer's endpoint name. The address must be the one that we talk to
 * already; of a link-local one, the scope is ours.
 */
static int remote_open(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	struct mesh_addr address = peer->address.addr, named;
	struct sockaddr_storage name;
	socklen_t len;
	uint16_t port;

	if (mesh_addr_from_sockaddr((const struct sockaddr *)hello->endpoint_name, hello->name_len,
				    &named, &port))
		return -EPROTO;
	named.scope_id = address.scope_id;
	if (!port || !mesh_addr_equal(&named, &address))
		return -EPROTO;
	peer->address.port = port;
	address.scope_id = peer->domain->nic->source.scope_id;
	len = mesh_addr_to_sockaddr(&address, port, &name);
	return mesh_remote_open(peer->domain, &name, len, &peer->remote);
}

/* Of the NIC that the peer is on; 0 where it does not say. */
static int nic_speed(const struct mesh_frame_hello *hello)
{
	struct mesh_endpoint_addr endpoint;
	int i;

	for (i = 0; i < hello->num_nics; i++) {
		if (!mesh_wire_nic_decode(&hello->nics[i], &endpoint) && endpoint.nic == hello->nic)
			return endpoint.speed_mbps;
	}
	return 0;
}

/* On RDMA large writes break off where the ends' MTUs differ; TCP settles on the smaller one. */
static void mtu_note(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	int here = peer->domain->nic->mtu, there = hello->mtu <= INT_MAX ? (int)hello->mtu : 0;
	struct mesh_log_limit *limit = &peer->node->limits.mtu;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_remote_mtu_set(peer->domain, peer->remote, there);
	if (here && there && here != there &&
	    mesh_log_limit_pass(limit, MTU_LINES, mesh_clock_ms(), more))
		mesh_log(peer->domain->provider == MESH_PROVIDER_VERBS_RXM ? MESH_LOG_WARN
									   : MESH_LOG_INFO,
			 __FILE__, __LINE__,
			 "the MTU of %s is %d bytes, and %d at %s: make them equal (ip link set "
			 "dev %s mtu %d)%s",
			 peer->domain->nic->netdev, here, there, mesh_peer_text(peer, text),
			 peer->domain->nic->netdev, there, more);
}

/* The listener of the HELLO's cookie knows now who is to connect. */
static void listener_tell(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	struct mesh_listener *listener;

	listener = mesh_listener_find(peer->node, hello->listen_id, hello->cookie);
	if (listener)
		mesh_accept_wait_heard(listener, peer);
}

static void hello_handle(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	enum mesh_refusal refusal;
	int ret;

	if (peer->state != MESH_PEER_HELLO) {
		mesh_peer_lose(peer, "it introduced itself twice");
		return;
	}
	memcpy(peer->name, hello->node_name, sizeof(peer->name));
	peer->address.nic = hello->nic;
	refusal = peer->incoming ? hello_refusal(peer, hello) : 0;
	if (refusal) {
		hello_refuse(peer, refusal);
		return;
	}
	peer->process_id = hello->process_id;
	peer->eager_limit = hello->eager_limit;
	peer->speed_mbps = nic_speed(hello);
	peer->remote_id = hello->peer_id;
	peer->remote_token = hello->peer_token;
	mesh_remote_close(peer->domain, peer->remote); /* of an attempt before this one */
	peer->remote = NULL;
	ret = remote_open(peer, hello);
	if (ret) {
		mesh_peer_lose(peer, ret == -EPROTO
					     ? "its endpoint name makes no sense for this link"
					     : "libfabric or memory has no room for its endpoint");
		return;
	}
	mtu_note(peer, hello);
	if (peer->incoming)
		listener_tell(peer, hello);
	atomic_store(&peer->greeted, false);
	atomic_store(&peer->greet_error, 0);
	if (peer->incoming)
		mesh_peer_hello_send(peer);
	mesh_peer_greet(peer);
}

static struct mesh_connect *connect_of_comm(struct mesh_peer *peer, uint32_t comm)
{
	struct mesh_connect *connect;

	LIST_FOREACH(connect, &peer->node->connects, entry) {
		if (mesh_connect_awaits(connect, peer, comm))
			return connect;
	}
	return NULL;
}

static struct mesh_comm *comm_of_id(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_comm *comm;

	LIST_FOREACH(comm, &peer->node->comms, entry) {
		if (comm->paths[0].peer == peer && comm->paths[0].sink.id == id)
			return comm;
	}
	return NULL;
}

static void refuse_handle(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_connect *connect;

	if (refuse->comm) {
		connect = connect_of_comm(peer, refuse->comm);
		if (connect)
			mesh_connect_refused(connect, (enum mesh_refusal)refuse->refusal);
		return;
	}
	if (peer->state == MESH_PEER_UP && (refuse->refusal == MESH_REFUSAL_NO_ANSWER ||
					    refuse->refusal == MESH_REFUSAL_NO_DATA)) {
		mesh_link_given_up(peer, (enum mesh_refusal)refuse->refusal, refuse->detail);
		return;
	}
	if (peer->incoming || peer->state != MESH_PEER_HELLO) {
		mesh_peer_lose(peer, "it refused what was never asked");
		return;
	}
	peer->refusal = (enum mesh_refusal)refuse->refusal;
	mesh_peer_retry(peer, mesh_refusal_text(peer->refusal));
}

static void accept_handle(struct mesh_peer *peer, const struct mesh_frame_comm *accept)
{
	struct mesh_connect *connect = connect_of_comm(peer, accept->to_comm);

	/* Else the connection was dropped meanwhile, and WITHDRAW is on its way. */
	if (connect)
		mesh_connect_accepted(connect, accept->comm, accept->token);
}

/*
 * For a comm that we have freed. The peer cannot close its end while something of it is in flight,
 * and that moves only while somebody polls here.
 */
static void stray_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (peer->state != MESH_PEER_UP)
		return;
	if (frame->header.type == MESH_FRAME_CLOSE) {
		peer->stray = frame->comm.to_comm;
		peer->stray_until_ms =
			mesh_clock_ms() + peer->node->config.dead_peer_timeout_s * 1000;
	} else if (frame->header.type == MESH_FRAME_CLOSED && peer->stray == frame->comm.to_comm) {
		peer->stray_until_ms = 0;
	}
}

/* Frames for a comm that exists already. */
static void comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_comm *comm = comm_of_id(peer, frame->comm.to_comm);

	if (!comm) {
		stray_handle(peer, frame);
		return;
	}
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_CLOSE:
		mesh_comm_close_came(comm);
		break;
	case MESH_FRAME_CLOSED:
		mesh_comm_closed_came(comm, &frame->comm);
		break;
	case MESH_FRAME_ASK:
		mesh_stall_asked(comm, frame->comm.sent);
		break;
	case MESH_FRAME_SENT:
		mesh_stall_answered(comm, frame->comm.sent);
		break;
	default:
		break;
	}
}

static void frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_HELLO:
		hello_handle(peer, &frame->hello);
		return;
	case MESH_FRAME_REFUSE:
		refuse_handle(peer, &frame->refuse);
		return;
	case MESH_FRAME_CONNECT:
		if (peer->incoming && peer->remote)
			mesh_listener_connect(peer, &frame->connect);
		else
			mesh_peer_lose(peer,
				       "it asked for a connection before it introduced itself");
		return;
	case MESH_FRAME_WITHDRAW:
		mesh_listener_withdrawn(peer, &frame->withdraw);
		return;
	case MESH_FRAME_ACCEPT:
		accept_handle(peer, &frame->comm);
		return;
	case MESH_FRAME_CLOSE:
	case MESH_FRAME_CLOSED:
	case MESH_FRAME_ASK:
	case MESH_FRAME_SENT:
		comm_frame_handle(peer, frame);
		return;
	case MESH_FRAME_CUT:
		if (peer->state == MESH_PEER_UP)
			mesh_peer_cut_came(peer, &frame->cut);
		return;
	case MESH_FRAME_PORT:
		if (peer->remote)
			mesh_remote_dialled_from(peer->domain, peer->remote,
						 (uint16_t)frame->comm.sent);
		return;
	}
}

/* Writes into @reason (MESH_PEER_REASON_MAX bytes) which two versions meet. */
static void versions_explain(const struct mesh_frame *frame, char *reason)
{
	const char *theirs = frame->hello.version;

	snprintf(reason, MESH_PEER_REASON_MAX,
		 "it runs %s%s (protocol %u), and we run nccl-net-mesh %s (protocol %d): install "
		 "the same version on all nodes",
		 theirs[0] ? "nccl-net-mesh " : "another version of this plugin", theirs,
		 frame->header.version, mesh_version(), MESH_PROTOCOL_VERSION);
}

/* A frame of another version. Who connected to us learns ours from our HELLO. */
static void foreign_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	char reason[MESH_PEER_REASON_MAX];

	versions_explain(frame, reason);
	if (frame->hello.node_name[0])
		memcpy(peer->name, frame->hello.node_name, sizeof(peer->name));
	if (peer->incoming) {
		mesh_peer_hello_send(peer);
		mesh_peer_refuse(peer, MESH_REFUSAL_VERSION, 0);
	}
	if (peer->state == MESH_PEER_HELLO && !peer->incoming) {
		peer->refusal = MESH_REFUSAL_VERSION;
		mesh_peer_retry(peer, reason);
	} else {
		mesh_peer_lose(peer, reason);
	}
}

/* Bytes that are not a frame. */
static void noise_handle(struct mesh_peer *peer)
{
	mesh_count_event(&peer->node->counters->refused);
	mesh_peer_lose(peer, "it sent bytes that are not this plugin's");
}

void mesh_peer_frames_handle(struct mesh_peer *peer)
{
	struct mesh_frame frame;
	int taken;

	/* A handler may end the connection, but never frees the peer: that is the tick's work. */
	while (peer->in_size) {
		taken = mesh_frame_decode(peer->in, peer->in_size, &frame);
		if (taken == -EPROTONOSUPPORT)
			foreign_handle(peer, &frame);
		else if (taken < 0)
			noise_handle(peer);
		if (taken <= 0)
			return;
		peer->in_size -= (size_t)taken;
		memmove(peer->in, peer->in + taken, peer->in_size);
		frame_handle(peer, &frame);
		if (peer->watch.fd < 0)
			return;
	}
}
