/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_frames.c - handles the frames that arrive over a control connection, first of all HELLO, and
 * greets.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/random.h"
#include "base/retry.h"
#include "base/version.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/endpoint.h"
#include "fabric/poll.h"
#include "fabric/provider_sockets.h"
#include "nic/rdma_port.h"
#include "system/node.h"
#include "wire/message.h"
#include "wire/stats.h"

/* Lines about MTUs, within MESH_LOG_LIMIT_PERIOD_MS. */
#define MTU_LINES 8
/* Each holds a buffer, for as long as our provider connects: on verbs to one peer at a time. */
#define GREETINGS_MAX 2

/* ---- greeting -------------------------------------------------------------------------------- */

/* domain->lock held. */
void mesh_peer_greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
				const void *payload)
{
	struct mesh_peer *peer = mesh_container_of(sink, struct mesh_peer, sink);

	(void)payload;
	if (header->type != MESH_MESSAGE_GREET)
		return;
	atomic_store(&peer->greeted, true); /* mesh_peer_tick() looks each millisecond */
}

/*
 * domain->lock held, as in mesh_peer_greeting_arrived(). The peer exists while its remote is in
 * use.
 */
static void greeting_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_peer *peer = buffer->owner;

	if (error)
		atomic_store(&peer->greet_error, error);
	atomic_fetch_sub(&peer->greetings, 1); /* last: now the peer may be freed */
}

/* Sends GREET, or the answer to it. Returns 0, or -EAGAIN if no buffer is free now. */
MESH_HOLDS(process)
static int greeting_send(struct mesh_peer *peer)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(peer->domain, peer->remote);
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_GREET,
		.comm = peer->remote_id,
		.token = peer->remote_token,
	};

	if (!buffer)
		return -EAGAIN;
	memcpy(buffer->bytes, &header, sizeof(header));
	buffer->size = sizeof(header);
	buffer->owner = peer;
	buffer->sent = greeting_sent;
	atomic_fetch_add(&peer->greetings, 1);
	mesh_remote_send(buffer);
	return 0;
}

/*
 * Sends GREET, also once more: if both ends connect at the same time, the provider ends one of the
 * two connections, and drops what waits there.
 */
MESH_HOLDS(process)
static void greet(struct mesh_peer *peer, uint64_t now_ms)
{
	if (!peer->incoming && atomic_load(&peer->greetings) < GREETINGS_MAX &&
	    mesh_clock_elapsed_ms(peer->greeted_ms, now_ms) >= MESH_RETRY_MIN_MS &&
	    !greeting_send(peer))
		peer->greeted_ms = now_ms;
}

/* True for a link that could be RDMA as far as this end is concerned. */
static bool is_second_choice(const struct mesh_peer *peer)
{
	return peer->domain->provider != peer->process->providers[peer->domain->dev];
}

/* True for a NIC without RDMA that stands in, because the other NICs do not reach the node. */
static bool stands_in(const struct mesh_peer *peer)
{
	return peer->domain->nic->verdict == MESH_NIC_SPARE_NO_RDMA &&
	       peer->process->dev_reserves[peer->domain->dev];
}

/* One WARN for each link that is slower, or other, than the user may expect. */
MESH_HOLDS(process)
static void link_warn(const struct mesh_peer *peer)
{
	const struct mesh_domain *domain = peer->domain;
	char text[MESH_PEER_TEXT_MAX];

	if (!peer->link || LIST_NEXT(LIST_FIRST(&peer->link->peers), link_entry))
		return;
	mesh_peer_text(peer, text);
	if (stands_in(peer))
		mesh_warn("%s has no RDMA and carries the data with %s, because no other NIC "
			  "reaches that node. If this is the management network, exclude it with "
			  "NCCL_MESH_NICS",
			  domain->nic->netdev, text);
	else if (is_second_choice(peer) && peer->best_provider == domain->provider)
		mesh_warn("%s uses tcp with %s, because there is no RDMA at that end: this link is "
			  "much slower than with RDMA at both ends",
			  domain->nic->netdev, text);
	else if (is_second_choice(peer))
		mesh_warn("%s uses tcp with %s, because %s does not get through, and "
			  "NCCL_MESH_PROVIDER allows tcp",
			  domain->nic->netdev, text,
			  mesh_provider_id_text(peer->process->providers[domain->dev]));
}

void mesh_peer_greeting_check(struct mesh_peer *peer, uint64_t now_ms)
{
	int error = atomic_exchange(&peer->greet_error, 0);
	char reason[MESH_RDMA_ERROR_MAX];

	if (error) {
		mesh_silence_explain(peer->domain, peer->address.port, error, reason);
		mesh_peer_retry(peer, reason);
		return;
	}
	if (!atomic_load(&peer->greeted)) {
		greet(peer, now_ms);
		return;
	}
	if (peer->incoming && greeting_send(peer))
		return; /* the next tick retries */
	if (!mesh_link_join(peer)) {
		mesh_peer_retry(peer, "no memory for its link");
		return;
	}
	mesh_peer_state_set(peer, MESH_PEER_UP);
	mesh_peer_sink_end(peer);
	link_warn(peer);
	/* Then the list of sockets is renewed, and shows this one. */
	if (!peer->incoming && peer->domain->provider != MESH_PROVIDER_VERBS_RXM)
		peer->port_ms = peer->process->sockets.taken_ms + MESH_SOCKETS_MS;
	if (peer->process->events->up)
		peer->process->events->up(peer);
}

/* ---- HELLO ----------------------------------------------------------------------------------- */

/* True if both run NCCL and would choose different algorithms. */
static bool tuner_differs(const struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	return hello->tuner != process->tuner_digest && hello->tuner != MESH_TUNER_ANY &&
	       process->tuner_digest != MESH_TUNER_ANY;
}

/* The index of the domain that HELLO names; -1 if our NIC has no such domain. */
static int hello_domain(const struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	return mesh_process_lane_index(peer->process, peer->dev,
				       (enum mesh_provider_id)hello->provider, hello->lane);
}

/* Why the first HELLO of a stranger is refused; 0 if it is accepted. */
static enum mesh_refusal hello_refusal(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	struct mesh_process *process = peer->process;
	const struct mesh_nic *nic = mesh_peer_nic(peer);

	/* Else a stranger could claim to be a process that we know, and has stopped. */
	if (mesh_process_id_of(mesh_one_way(hello->secret)) != hello->process_id ||
	    !process->events->admits(process, hello))
		return MESH_REFUSAL_COOKIE;
	if (hello_domain(peer, hello) < 0)
		return MESH_REFUSAL_PROVIDER;
	if (tuner_differs(process, hello))
		return MESH_REFUSAL_TUNER;
	/* Otherwise what we send would use another NIC, such as the management network's. */
	if (hello->routed &&
	    !mesh_route_leads(NULL, &nic->source, nic->ifindex, &peer->address.addr))
		return MESH_REFUSAL_ROUTE;
	return 0;
}

MESH_HOLDS(process)
static void hello_refuse(struct mesh_peer *peer, enum mesh_refusal refusal)
{
	mesh_peer_refuse(peer, refusal, 0);
	if (refusal == MESH_REFUSAL_COOKIE)
		mesh_peer_lose(peer,
			       "its HELLO is for another process (of another job, or one that has "
			       "ended), or comes from a stranger");
	else
		mesh_peer_lose(peer, mesh_refusal_text(refusal));
}

/*
 * Uses only the port of the peer's endpoint name. The address must be that of the control
 * connection; the scope of a link-local address is that of our NIC.
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

/* Keeps what HELLO says of the peer's NICs: a handle has no room for many. */
MESH_HOLDS(process)
static void nics_keep(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	int i;

	peer->nics = calloc(MESH_NICS_MAX, sizeof(*peer->nics));
	for (i = 0; peer->nics && i < hello->num_nics; i++) {
		if (!mesh_wire_nic_decode(&hello->nics[i], &peer->nics[peer->num_nics]))
			peer->num_nics++;
	}
}

/*
 * What HELLO says of the peer's NIC on this link, if it does: otherwise the speed is unknown. Of an
 * incoming peer only the address was known before.
 */
MESH_HOLDS(process)
static void nic_learn(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	struct mesh_endpoint_addr endpoint;
	int i;

	peer->speed_mbps = 0;
	peer->best_provider = (enum mesh_provider_id)hello->provider;
	peer->address.provider = peer->domain->provider;
	for (i = 0; i < hello->num_nics; i++) {
		if (mesh_wire_nic_decode(&hello->nics[i], &endpoint) || endpoint.nic != hello->nic)
			continue;
		peer->speed_mbps = endpoint.speed_mbps;
		peer->best_provider = endpoint.provider;
		peer->address.reserve = endpoint.reserve;
		return;
	}
}

/* On RDMA, large writes fail if the MTUs of the two ends differ; TCP uses the smaller one. */
static void mtu_note(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	int here = peer->domain->nic->mtu, there = hello->mtu <= INT_MAX ? (int)hello->mtu : 0;
	struct mesh_log_limit *limit = &peer->process->limits.mtu;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (here && there && here != there &&
	    mesh_log_limit_pass(limit, MTU_LINES, mesh_clock_ms(), more))
		mesh_log(peer->domain->provider == MESH_PROVIDER_VERBS_RXM ? MESH_LOG_WARN
									   : MESH_LOG_INFO,
			 __FILE__, __LINE__,
			 "the MTU of %s is %d bytes, and %d at %s: make them equal (`fi_mesh up`, "
			 "or ip link set dev %s mtu %d)%s",
			 peer->domain->nic->netdev, here, there, mesh_peer_text(peer, text),
			 peer->domain->nic->netdev, there, more);
}

MESH_HOLDS(process)
static void name_learn(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	memcpy(peer->name, hello->node_name, sizeof(peer->name));
	memcpy(peer->site, hello->site, sizeof(peer->site));
	peer->node_id = hello->node_id;
	peer->address.nic = hello->nic;
}

MESH_HOLDS(process)
static void hello_handle(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	int ret;

	if (peer->state != MESH_PEER_HELLO && peer->state != MESH_PEER_OPENING) {
		mesh_peer_lose(peer, "it sent HELLO twice");
		return;
	}
	name_learn(peer, hello);
	if (peer->incoming) {
		peer->routed = hello->routed;
		peer->control_port = hello->control_port;
	}
	mesh_peer_process_set(peer, hello->process_id);
	if (!mesh_link_settle(peer)) {
		mesh_peer_retry(peer, "what was lost on this link has not ended yet");
		return;
	}
	/* Our HELLO names an endpoint that is open. */
	if (!mesh_endpoint_is_open(peer->domain) ||
	    (!peer->incoming && peer->generation != atomic_load(&peer->domain->generation))) {
		mesh_peer_retry(peer, MESH_ENDPOINT_OPENING);
		return;
	}
	peer->eager_limit = hello->eager_limit;
	mesh_peer_drained_learn(peer, hello->nics, hello->num_nics);
	nic_learn(peer, hello);
	if (!peer->incoming)
		nics_keep(peer, hello);
	peer->remote_id = hello->peer_id;
	peer->remote_token = hello->peer_token;
	if (peer->incoming && mesh_peer_sink_begin(peer)) {
		hello_refuse(peer, MESH_REFUSAL_RESOURCES);
		return;
	}
	ret = remote_open(peer, hello);
	if (ret) {
		mesh_peer_lose(peer, ret == -EPROTO ? "its endpoint name does not match this link"
						    : "libfabric cannot add its address");
		return;
	}
	mtu_note(peer, hello);
	if (peer->incoming)
		peer->process->events->introduced(peer, hello);
	if (peer->incoming)
		mesh_peer_hello_send(peer);
	mesh_peer_state_set(peer, MESH_PEER_GREETING);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* True if the sender of REFUSE has given up a link that was up. */
static bool is_about_a_link(const struct mesh_frame_refuse *refuse)
{
	return refuse->refusal == MESH_REFUSAL_NO_ANSWER ||
	       refuse->refusal == MESH_REFUSAL_NO_DATA ||
	       refuse->refusal == MESH_REFUSAL_NO_WRITES || refuse->refusal == MESH_REFUSAL_BROKEN;
}

/* True if @refuse names the link of @peer as it is now; it may have been lost and come back. */
MESH_HOLDS(process)
static bool is_named(const struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	return mesh_link_name(peer->address.nic, (uint8_t)peer->domain->dev,
			      (uint8_t)peer->domain->lane) == refuse->detail &&
	       peer->remote_id == refuse->peer_id;
}

/*
 * Loses a link that the other process has given up: the one that @refuse names or, if it names
 * none, the one that the frame came over. A frame about an earlier life of the link has no effect.
 */
MESH_HOLDS(process)
static void link_given_up(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->link && (refuse->detail ? is_named(other, refuse) : other == peer))
			break;
	}
	if (other)
		mesh_link_lose(other, mesh_refusal_text((enum mesh_refusal)refuse->refusal), 0);
	else if (peer->state == MESH_PEER_GREETING && !refuse->detail) /* there it may be up */
		mesh_peer_retry(peer, mesh_refusal_text((enum mesh_refusal)refuse->refusal));
}

MESH_HOLDS(process)
static void refuse_handle(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	if ((peer->state == MESH_PEER_UP || peer->state == MESH_PEER_GREETING) &&
	    is_about_a_link(refuse)) {
		link_given_up(peer, refuse);
		return;
	}
	if (peer->incoming || peer->state != MESH_PEER_HELLO || !refuse->refusal) {
		mesh_peer_lose(peer, "it sent REFUSE without a request, or a reason");
		return;
	}
	peer->refusal = (enum mesh_refusal)refuse->refusal;
	mesh_peer_retry(peer, mesh_refusal_text(peer->refusal));
}

/* Returns false if the frame is for the layers above. */
MESH_HOLDS(process)
static bool own_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_HELLO:
		hello_handle(peer, &frame->hello);
		return true;
	case MESH_FRAME_REFUSE:
		if (frame->refuse.comm)
			return false;
		refuse_handle(peer, &frame->refuse);
		return true;
	case MESH_FRAME_PORT:
		if (peer->remote)
			mesh_remote_dialled_from(peer->domain, peer->remote, frame->port.port);
		return true;
	default:
		return false;
	}
}

MESH_HOLDS(process)
static void frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	mesh_frame_handler *handler = peer->process->events->frames[frame->header.type];

	if (own_frame_handle(peer, frame) || !handler)
		return;
	/* Before HELLO, CONNECT ends the connection, and nothing else means anything. */
	if (peer->domain || frame->header.type == MESH_FRAME_CONNECT)
		handler(peer, frame);
}

/* Writes both versions into @reason (MESH_PEER_REASON_MAX bytes). */
static void versions_explain(const struct mesh_frame *frame, char *reason)
{
	const char *theirs = frame->hello.version;

	snprintf(reason, MESH_PEER_REASON_MAX,
		 "it runs %s%s (protocol %u), and we run nccl-net-mesh %s (protocol %d): install "
		 "the same version on all nodes",
		 theirs[0] ? "nccl-net-mesh " : "another version of this plugin", theirs,
		 frame->header.version, mesh_version(), MESH_PROTOCOL_VERSION);
}

/* Handles a frame of another version. An incoming peer learns our version from our HELLO. */
MESH_HOLDS(process)
static void foreign_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	char reason[MESH_PEER_REASON_MAX];

	versions_explain(frame, reason);
	if (frame->hello.node_name[0])
		memcpy(peer->name, frame->hello.node_name, sizeof(peer->name));
	if (peer->incoming) {
		mesh_peer_hello_send(peer);
		mesh_peer_refuse(peer, MESH_REFUSAL_VERSION, 0);
		peer->process->events->foreign(peer, &frame->hello, reason);
	}
	if (peer->state == MESH_PEER_HELLO && !peer->incoming) {
		peer->refusal = MESH_REFUSAL_VERSION;
		mesh_peer_retry(peer, reason);
	} else {
		mesh_peer_lose(peer, reason);
	}
}

/* Handles bytes that are not a frame. */
MESH_HOLDS(process)
static void noise_handle(struct mesh_peer *peer)
{
	mesh_count_event(&peer->process->counters->refused);
	mesh_peer_lose(peer, "it sent bytes that are not frames of this plugin");
}

/*
 * A stranger's HELLO is refused, or it names the provider and with it the domain of our NIC, which
 * only a HELLO that is accepted has opened: on ofi_rxm it costs 70 to 134 MB. Returns false while
 * it is being opened: then the HELLO stays where it is; and if the connection is over.
 */
MESH_HOLDS(process)
static bool stranger_admit(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	const struct mesh_frame_hello *hello = &frame->hello;
	struct mesh_process *process = peer->process;
	enum mesh_refusal refusal;
	int index;

	if (peer->domain || frame->header.type != MESH_FRAME_HELLO)
		return true;
	name_learn(peer, hello);
	refusal = hello_refusal(peer, hello);
	if (refusal) {
		hello_refuse(peer, refusal);
		return false;
	}
	index = hello_domain(peer, hello);
	if (!process->domains[index] && process->events->opens(process, index, false)) {
		if (peer->state == MESH_PEER_HELLO)
			mesh_peer_state_set(peer, MESH_PEER_OPENING);
		return false;
	}
	peer->domain = process->domains[index];
	if (!peer->domain && hello->lane)
		mesh_peer_refuse(peer, MESH_REFUSAL_RESOURCES, 0); /* it goes on with fewer */
	if (!peer->domain)
		mesh_peer_lose(peer, "our NIC cannot be opened for it");
	return peer->domain;
}

void mesh_peers_hello_resume(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->state == MESH_PEER_OPENING)
			mesh_peer_frames_handle(peer);
	}
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
		if (taken <= 0 || !stranger_admit(peer, &frame))
			return;
		peer->in_size -= (size_t)taken;
		memmove(peer->in, peer->in + taken, peer->in_size);
		frame_handle(peer, &frame);
		if (peer->watch.fd < 0)
			return;
	}
}
