/* SPDX-License-Identifier: Apache-2.0 */
/* peer_greeting.c - proves that the fabric works in both directions, before any comm is made. */
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_greeting.h"
#include "control/peer_index.h"
#include "control/peer_port.h"
#include "fabric/poll.h"
#include "nic/rdma_port.h"
#include "wire/message.h"

/* Leaves the rest to the engine, which finds the peer in process->greeted. Needs no lock. */
static void news_leave(struct mesh_peer *peer)
{
	struct mesh_peer *_Atomic *greeted = &peer->process->greeted;

	if (atomic_exchange(&peer->has_news, true))
		return; /* it is there already */
	peer->next_greeted = atomic_load(greeted);
	while (!atomic_compare_exchange_weak(greeted, &peer->next_greeted, peer))
		;
	mesh_engine_wake(&peer->process->engine);
}

/* domain->lock held. */
void mesh_peer_greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
				const void *payload)
{
	struct mesh_peer *peer = mesh_container_of(sink, struct mesh_peer, sink);

	(void)payload;
	if (header->type != (peer->incoming ? MESH_MESSAGE_GREET : MESH_MESSAGE_GREET_REPLY))
		return;
	atomic_store(&peer->greeted, true);
	news_leave(peer);
}

/*
 * domain->lock held, as in mesh_peer_greeting_arrived(). The peer exists while its remote is in
 * use.
 */
static void greeting_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_peer *peer = buffer->owner;

	if (error) {
		atomic_store(&peer->greet_error, error);
		news_leave(peer);
	}
	atomic_fetch_sub(&peer->greetings, 1); /* last: now the peer may be freed */
}

/* Sends GREET, or its reply. Returns 0, or -EAGAIN if no buffer is free now. */
MESH_HOLDS(process)
static int greeting_send(struct mesh_peer *peer)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(peer->domain, peer->remote);
	struct mesh_message_header header = {
		.type = peer->incoming ? MESH_MESSAGE_GREET_REPLY : MESH_MESSAGE_GREET,
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

void mesh_peer_greet(struct mesh_peer *peer)
{
	mesh_peer_state_set(peer, MESH_PEER_GREETING);
	if (!peer->incoming && greeting_send(peer))
		mesh_peer_retry(peer, "no message buffer was free for the greeting");
}

void mesh_peer_greet_again(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->incoming && peer->state == MESH_PEER_GREETING)
		greeting_send(peer); /* if no buffer is free, not now */
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

void mesh_peer_greeting_check(struct mesh_peer *peer)
{
	int error = atomic_exchange(&peer->greet_error, 0);
	char reason[MESH_RDMA_ERROR_MAX];

	if (error) {
		mesh_remote_silence_explain(peer->domain, peer->remote, peer->address.port, error,
					    reason);
		mesh_peer_retry(peer, reason);
		return;
	}
	if (!atomic_load(&peer->greeted))
		return;
	if (peer->incoming && greeting_send(peer))
		return; /* the next tick retries */
	mesh_peer_state_set(peer, MESH_PEER_UP);
	mesh_peer_sink_end(peer);
	mesh_link_watch(peer);
	link_warn(peer);
	if (peer->incoming)
		mesh_peer_index_add(peer); /* its node is known now */
	else
		mesh_peer_port_report(peer);
	if (peer->process->events->up)
		peer->process->events->up(peer);
}

struct mesh_peer *mesh_peers_greeted(struct mesh_process *process)
{
	return atomic_exchange(&process->greeted, NULL);
}

struct mesh_peer *mesh_peer_greeted_next(struct mesh_peer *peer)
{
	struct mesh_peer *next = peer->next_greeted;

	atomic_store(&peer->has_news, false); /* from now on a greeting may add it again */
	return next;
}
