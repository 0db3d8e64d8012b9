/* SPDX-License-Identifier: Apache-2.0 */
/* peer_send.c - sends the frames of a control connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/version.h"
#include "control/link.h"
#include "control/peer_send.h"
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
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = refusal;
	frame.refuse.comm = comm;
	frame.refuse.detail = refusal == MESH_REFUSAL_VERSION ? MESH_PROTOCOL_VERSION
							      : (uint32_t)provider_of(peer);
	mesh_count_event(&peer->process->counters->refused);
	mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}
