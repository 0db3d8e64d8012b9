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
#include "control/peer_send.h"
#include "fabric/provider_sockets.h"
#include "wire/stats.h"

/*
 * Between two lists for PORT; the first report of a while does not wait. The pause is so much
 * longer than the list took, so that lists take at most a fortieth of the engine's time.
 */
#define PAUSE_RATIO 40

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

void mesh_peer_hello_send(struct mesh_peer *peer)
{
	struct mesh_process *process = peer->process;
	struct mesh_domain *domain = peer->domain;
	struct mesh_frame frame;
	struct mesh_frame_hello *hello = &frame.hello;
	struct mesh_endpoint_addr offers[MESH_NICS_MAX];
	struct sockaddr_storage name;
	int i;

	memset(&frame, 0, sizeof(frame));
	hello->node_id = process->node_id;
	hello->process_id = process->process_id;
	if (!peer->incoming) /* anybody may connect */
		memcpy(hello->secret, process->secret, sizeof(hello->secret));
	peer->sent_cookie = peer->incoming ? 0 : peer->cookie;
	hello->cookie = peer->sent_cookie;
	peer->sent_listen_id = peer->incoming ? 0 : peer->listen_id;
	hello->listen_id = peer->sent_listen_id;
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
	hello->num_nics = (uint8_t)mesh_process_offers(process, offers);
	for (i = 0; i < hello->num_nics; i++)
		mesh_wire_nic_encode(&offers[i], &hello->nics[i]);
	mesh_peer_send(peer, &frame, MESH_FRAME_HELLO);
}

void mesh_peer_nics_send(struct mesh_peer *peer)
{
	struct mesh_endpoint_addr offers[MESH_NICS_MAX];
	struct mesh_frame frame;
	int i;

	memset(&frame, 0, sizeof(frame));
	frame.nics.num_nics = (uint8_t)mesh_process_offers(peer->process, offers);
	for (i = 0; i < frame.nics.num_nics; i++)
		mesh_wire_nic_encode(&offers[i], &frame.nics.nics[i]);
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

/* ---- PARK ------------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static void users_learn(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	char text[MESH_PEER_TEXT_MAX];

	mesh_trace("the link of %s with %s is %s", peer->domain->nic->netdev,
		   mesh_peer_text(peer, text), mesh_peer_is_parked(peer) ? "out of use" : "in use");
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->park)
			user->ops->park(user);
	}
}

void mesh_peer_park(struct mesh_peer *peer, bool parked)
{
	struct mesh_frame frame = {.park = {.parked = parked}};

	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_UP || !(peer->parked & MESH_PEER_PARKED_HERE) == !parked)
		return;
	peer->parked ^= MESH_PEER_PARKED_HERE;
	mesh_peer_send(peer, &frame, MESH_FRAME_PARK);
	users_learn(peer);
}

void mesh_peer_park_came(struct mesh_peer *peer, const struct mesh_frame_park *frame)
{
	mesh_process_assert_locked(peer->process);
	/* Its end may be up, and the greeting that tells us still on its way. */
	if (peer->state != MESH_PEER_UP && peer->state != MESH_PEER_GREETING) {
		mesh_count_event(&peer->process->counters->refused);
		return;
	}
	peer->parked &= MESH_PEER_PARKED_HERE;
	peer->parked |= frame->parked ? MESH_PEER_PARKED_THERE : 0;
	users_learn(peer);
}

/* ---- PORT ------------------------------------------------------------------------------------ */

void mesh_peer_port_cancel(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->port_entry.le_prev)
		LIST_REMOVE(peer, port_entry);
	peer->port_entry.le_prev = NULL;
}

MESH_HOLDS(process)
static void port_send(struct mesh_peer *peer)
{
	struct mesh_frame frame = {.port = {.port = 0}};

	frame.port.port =
		mesh_remote_dialled_port(&peer->process->ports.sockets, peer->domain, peer->remote);
	if (frame.port.port)
		mesh_peer_send(peer, &frame, MESH_FRAME_PORT);
}

/* The engine's thread, without process->lock. */
static void ports_find(void *owner)
{
	struct mesh_process *process = owner;
	struct mesh_socket_table sockets = {.entries = NULL};
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_peer *peer;

	mesh_socket_table_take(&sockets, begin_ms);
	mesh_process_lock(process);
	process->ports.pause_ms =
		PAUSE_RATIO * (1 + mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()));
	mesh_socket_table_free(&process->ports.sockets);
	process->ports.sockets = sockets;
	while ((peer = LIST_FIRST(&process->ports.due))) {
		mesh_peer_port_cancel(peer);
		port_send(peer);
	}
	mesh_process_unlock(process);
}

MESH_HOLDS(process)
static void ports_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_process_ports *ports =
		mesh_container_of(timer, struct mesh_process_ports, timer);
	struct mesh_process *process = mesh_container_of(ports, struct mesh_process, ports);

	(void)now_ms;
	mesh_engine_errand(&process->engine, ports_find);
}

void mesh_peer_port_report(struct mesh_peer *peer)
{
	struct mesh_process_ports *ports = &peer->process->ports;

	mesh_process_assert_locked(peer->process);
	/* verbs has no sockets. */
	if (peer->port_entry.le_prev || peer->domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	LIST_INSERT_HEAD(&ports->due, peer, port_entry);
	ports->timer.expired = ports_expired;
	mesh_engine_timer_advance(&peer->process->engine, &ports->timer,
				  ports->sockets.taken_ms + ports->pause_ms);
}
