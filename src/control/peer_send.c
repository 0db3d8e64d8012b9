/* SPDX-License-Identifier: Apache-2.0 */
/* peer_send.c - sends the frames of a control connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/version.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "fabric/provider_sockets.h"
#include "wire/stats.h"

/* The caller may be in the midst of a walk over peers or comms: mesh_peer_tick() loses the link. */
MESH_HOLDS(process)
static void out_drop(struct mesh_peer *peer)
{
	free(peer->out);
	peer->out = NULL;
	peer->out_size = SIZE_MAX;
	mesh_peer_check(peer);
}

MESH_HOLDS(process)
static void out_append(struct mesh_peer *peer, const void *bytes, size_t size)
{
	uint8_t *grown;

	if (peer->out_size + size > MESH_PEER_OUT_MAX ||
	    !(grown = realloc(peer->out, peer->out_size + size))) {
		out_drop(peer);
		return;
	}
	memcpy(grown + peer->out_size, bytes, size);
	peer->out = grown;
	peer->out_size += size;
}

void mesh_peer_flush(struct mesh_peer *peer)
{
	ssize_t n;

	if (peer->watch.fd < 0 || !peer->out_size || mesh_peer_is_choked(peer))
		return;
	n = send(peer->watch.fd, peer->out, peer->out_size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/* EPIPE: the other end came before, or the error was another call's. */
		if (errno != EPIPE)
			peer->send_error = -errno;
		return; /* recv() comes next */
	}
	if (n > 0) {
		peer->out_size -= (size_t)n;
		memmove(peer->out, peer->out + n, peer->out_size);
	}
	mesh_engine_rewatch(&peer->process->engine, &peer->watch,
			    peer->out_size ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type)
{
	mesh_process_assert_locked(peer->process);
	if (peer->watch.fd < 0 || mesh_peer_is_choked(peer))
		return;
	out_append(peer, frame, mesh_frame_finish(frame, type));
	mesh_peer_flush(peer);
	mesh_link_sent(peer);
}

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

/* ---- PORT ------------------------------------------------------------------------------------ */

void mesh_peer_port_report(struct mesh_peer *peer, uint64_t now_ms)
{
	struct mesh_frame frame = {.port = {.port = 0}};

	if (peer->state != MESH_PEER_UP || !peer->port_ms || now_ms < peer->port_ms)
		return;
	peer->port_ms = 0;
	frame.port.port = mesh_remote_dialled_port(&peer->process->sockets, peer->domain,
						   peer->remote, now_ms);
	if (frame.port.port)
		mesh_peer_send(peer, &frame, MESH_FRAME_PORT);
}
