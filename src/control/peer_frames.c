/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_frames.c - what peers say: sends HELLO and NICS, and handles the frames that arrive over a
 * control connection, first of all HELLO.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/version.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/endpoint.h"
#include "system/node.h"
#include "wire/stats.h"

/* Lines about MTUs, within MESH_LOG_LIMIT_PERIOD_MS. */
#define MTU_LINES 8

/* ---- HELLO and NICS, that we send ------------------------------------------------------------ */

/* The provider between the two; the best one of our NIC as long as the peer has chosen none. */
static enum mesh_provider_id provider_of(const struct mesh_peer *peer)
{
	return peer->domain ? peer->domain->provider : peer->process->providers[peer->dev];
}

/* Our NICs. Returns how many. */
MESH_HOLDS(process)
static uint8_t nics_encode(const struct mesh_process *process, struct mesh_wire_nic *nics)
{
	struct mesh_endpoint_addr offers[MESH_NICS_MAX];
	int i, num = mesh_process_offers(process, offers);

	for (i = 0; i < num; i++) {
		mesh_wire_nic_encode(&offers[i], &nics[i]);
		if (mesh_process_is_drained(process, offers[i].nic))
			nics[i].provider |= MESH_WIRE_NIC_DRAINED;
	}
	return (uint8_t)num;
}

void mesh_peer_hello_send(struct mesh_peer *peer)
{
	struct mesh_process *process = peer->process;
	struct mesh_domain *domain = peer->domain;
	struct mesh_frame frame;
	struct mesh_frame_hello *hello = &frame.hello;
	struct sockaddr_storage name;

	memset(&frame, 0, sizeof(frame));
	hello->node_id = process->node_id;
	hello->process_id = process->process_id;
	if (!peer->incoming) /* anybody may connect */
		memcpy(hello->secret, process->secret, sizeof(hello->secret));
	hello->cookie = peer->cookie;
	hello->listen_id = peer->listen_id;
	hello->peer_id = peer->sink.id;
	hello->peer_token = peer->sink.token;
	hello->provider = (uint8_t)provider_of(peer);
	hello->nic = (uint8_t)peer->dev;
	if (domain) {
		peer->generation = atomic_load(&domain->generation);
		hello->name_len = (uint8_t)domain->name_len;
		memcpy(hello->endpoint_name, domain->name, domain->name_len);
	} else { /* to a peer of another version, which is refused */
		hello->name_len =
			(uint8_t)mesh_addr_to_sockaddr(&mesh_peer_nic(peer)->source, 0, &name);
		memcpy(hello->endpoint_name, &name, hello->name_len);
	}
	memcpy(hello->node_name, process->name, sizeof(hello->node_name));
	snprintf(hello->version, sizeof(hello->version), "%s", mesh_version());
	hello->eager_limit = (uint32_t)mesh_process_eager_limit(process, provider_of(peer));
	hello->mtu = (uint32_t)mesh_peer_nic(peer)->mtu;
	hello->tuner = process->tuner_digest;
	hello->control_port = process->control_port;
	hello->routed = peer->routed;
	hello->lane = domain ? (uint8_t)domain->lane : 0;
	snprintf(hello->site, sizeof(hello->site), "%.*s", (int)sizeof(hello->site) - 1,
		 process->config.site);
	hello->num_nics = nics_encode(process, hello->nics);
	mesh_peer_send(peer, &frame, MESH_FRAME_HELLO);
}

MESH_HOLDS(process)
static void nics_send(struct mesh_peer *peer)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.nics.num_nics = nics_encode(peer->process, frame.nics.nics);
	mesh_peer_send(peer, &frame, MESH_FRAME_NICS);
}

void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm)
{
	struct mesh_frame frame = {.refuse = {.refusal = refusal, .comm = comm}};

	frame.refuse.detail = refusal == MESH_REFUSAL_VERSION ? MESH_PROTOCOL_VERSION
							      : (uint32_t)provider_of(peer);
	mesh_count_event(&peer->process->counters->refused);
	mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}

/* ---- drained NICs ---------------------------------------------------------------------------- */

bool mesh_peer_is_drained(const struct mesh_peer *peer)
{
	return mesh_process_is_drained(peer->process, peer->dev) ||
	       peer->drained_nics >> peer->address.nic & 1;
}

MESH_HOLDS(process)
static void users_learn(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	char text[MESH_PEER_TEXT_MAX];

	mesh_trace("the link of %s with %s is %s", peer->domain->nic->netdev,
		   mesh_peer_text(peer, text),
		   mesh_peer_is_drained(peer) ? "out of use" : "in use");
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->drained)
			user->ops->drained(user);
	}
}

void mesh_peer_drained_learn(struct mesh_peer *peer, const struct mesh_wire_nic *nics, int num_nics)
{
	uint32_t before = peer->drained_nics;
	int i;

	mesh_process_assert_locked(peer->process);
	peer->drained_nics = 0;
	for (i = 0; i < num_nics; i++) {
		if (nics[i].provider & MESH_WIRE_NIC_DRAINED && nics[i].nic < MESH_NICS_MAX)
			peer->drained_nics |= 1u << nics[i].nic;
	}
	if (peer->state == MESH_PEER_UP && peer->drained_nics != before)
		users_learn(peer);
}

void mesh_peers_nics_changed(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->peers, entry) {
		/* Those that our HELLO has gone to; a later one has all of it. */
		if (peer->state > MESH_PEER_UP ||
		    peer->state < (peer->incoming ? MESH_PEER_GREETING : MESH_PEER_HELLO))
			continue;
		nics_send(peer);
		if (peer->state == MESH_PEER_UP)
			users_learn(peer);
	}
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
	if (!process->domains[index] && process->events->opens(process, index)) {
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
