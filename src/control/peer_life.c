/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_life.c - the life of a peer: it is made, greets, is checked when something is due, and is
 * freed; and dials, which make a way to another process real.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/retry.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
#include "fabric/provider_sockets.h"
#include "nic/rdma_port.h"
#include "system/tcp_look.h"
#include "wire/message.h"

/* Nothing answers an attempt to connect, or one that has connected sends nothing: it is over. */
#define SILENCE_MS 10000
#define NEVER UINT64_MAX
/* Each holds a buffer, for as long as our provider connects: on verbs to one peer at a time. */
#define GREETINGS_MAX 2

/* ---- greeting -------------------------------------------------------------------------------- */

/* Handles GREET or its reply. domain->lock held. */
static void greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
			     const void *payload)
{
	struct mesh_peer *peer = mesh_container_of(sink, struct mesh_peer, sink);

	(void)payload;
	if (header->type != MESH_MESSAGE_GREET)
		return;
	atomic_store(&peer->greeted, true); /* mesh_peer_tick() looks each millisecond */
}

/*
 * domain->lock held, as in greeting_arrived(). The peer exists while its remote is in
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

/* Sends the greeting until it was answered or has failed, and ends it then. */
MESH_HOLDS(process)
static void greeting_check(struct mesh_peer *peer, uint64_t now_ms)
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

/* ---- making and freeing ---------------------------------------------------------------------- */

MESH_HOLDS(process)
static int peer_alloc(struct mesh_process *process, int dev, struct mesh_peer **made)
{
	struct mesh_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return -ENOMEM;
	peer->process = process;
	peer->dev = dev;
	peer->watch = (struct mesh_watch){.fd = -1, .ready = mesh_peer_ready};
	peer->timer.expired = mesh_peer_tick;
	peer->sink.message = greeting_arrived;
	LIST_INIT(&peer->user_list);
	LIST_INSERT_HEAD(&process->peers, peer, entry);
	*made = peer;
	return 0;
}

/* The outgoing peer there, if one is or may be up. One that nobody waits for ends soon. */
MESH_HOLDS(process)
static struct mesh_peer *peer_find(const struct mesh_process *process, const struct mesh_way *way)
{
	const struct mesh_addr *addr = &way->address.addr;
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (!peer->incoming && peer->control_port == way->control_port &&
		    (peer->state == MESH_PEER_UP || (peer->state < MESH_PEER_UP && peer->users)) &&
		    mesh_peer_is_at(peer, process->domains[way->index], addr))
			return peer;
	}
	return NULL;
}

MESH_HOLDS(process)
static int outgoing_make(struct mesh_process *process, const struct mesh_way *way,
			 const struct mesh_peer *failed, struct mesh_peer **made)
{
	struct mesh_peer *peer;
	int ret = peer_alloc(process, mesh_way_dev(way), &peer);

	if (ret)
		return ret;
	peer->domain = process->domains[way->index];
	ret = mesh_peer_sink_begin(peer);
	if (ret) {
		mesh_peer_free(peer);
		return ret;
	}
	peer->address = way->address;
	peer->control_port = way->control_port;
	if (failed) {
		peer->first_refused_ms = failed->first_refused_ms;
		peer->silent_ms = failed->silent_ms;
		peer->failed_in = failed->failed_in;
		memcpy(peer->reason, failed->reason, sizeof(peer->reason));
		memcpy(peer->name, failed->name, sizeof(peer->name));
	}
	*made = peer;
	return 0;
}

/*
 * Finds or makes the outgoing peer at the other end of @way, and counts one user. Starts to connect
 * if it is new. Our domain is open. @failed: the attempt before, whose reason the new one has until
 * it gets further; or NULL.
 */
MESH_HOLDS(process)
static int peer_get(struct mesh_process *process, const struct mesh_way *way,
		    const struct mesh_peer *failed, struct mesh_peer **peer)
{
	struct mesh_peer *found = peer_find(process, way);
	bool is_new = !found;
	int ret = is_new ? outgoing_make(process, way, failed, &found) : 0;

	mesh_process_assert_locked(process);
	if (ret)
		return ret;
	if (found->state == MESH_PEER_CONNECTING) {
		/* What an earlier dial wanted its HELLO to name may be closed by now. */
		found->listen_id = way->listen_id;
		found->cookie = way->cookie;
		found->routed = way->routed;
	}
	if (is_new)
		mesh_peer_attempt_start(found);
	mesh_peer_use(found);
	mesh_peer_check(found);
	*peer = found;
	return 0;
}

int mesh_peer_accept(struct mesh_process *process, int dev, int fd, const struct mesh_addr *from)
{
	struct mesh_peer *peer;
	int ret;

	ret = peer_alloc(process, dev, &peer);
	if (ret)
		return ret;
	peer->incoming = true;
	peer->address.addr = *from;
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	peer->watch.fd = fd;
	ret = mesh_engine_watch(&process->engine, &peer->watch, EPOLLIN);
	if (ret) {
		peer->watch.fd = -1; /* the caller still owns the descriptor */
		mesh_peer_free(peer);
	}
	return ret;
}

void mesh_peer_free(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	mesh_link_leave(peer);
	mesh_peer_sink_end(peer);
	mesh_engine_timer_cancel(&peer->process->engine, &peer->timer);
	mesh_peer_process_set(peer, 0);
	mesh_engine_unwatch(&peer->process->engine, &peer->watch);
	if (peer->fence)
		mesh_fence_abandon(peer->fence); /* it goes on without the peer */
	mesh_remote_close(peer->domain, peer->remote);
	LIST_REMOVE(peer, entry);
	free(peer->out);
	free(peer->nics);
	free(peer);
}

/* ---- what is due ----------------------------------------------------------------------------- */

/* Writes why nothing answers on a link into @why (MESH_PEER_REASON_MAX / 2 bytes). */
MESH_HOLDS(process)
static void silence_explain(const struct mesh_link *link, char *why)
{
	const struct mesh_peer *peer;

	snprintf(why, MESH_PEER_REASON_MAX / 2, "cable pulled, link down, node stopped");
	LIST_FOREACH(peer, &link->peers, link_entry) {
		/* Of what was sent: the connection itself has not ended. */
		if (mesh_tcp_error_take(peer->watch.fd) == -ENETUNREACH)
			mesh_control_errno_explain(-ENETUNREACH, why, MESH_PEER_REASON_MAX / 2);
	}
}

MESH_HOLDS(process)
static void dead_link_lose(struct mesh_peer *peer)
{
	const struct mesh_link *link = peer->link;
	unsigned long long limit_s = link->limit_ms / 1000;
	char reason[MESH_PEER_REASON_MAX], why[MESH_PEER_REASON_MAX / 2];

	if (link->verdict == MESH_REFUSAL_NO_ANSWER) {
		silence_explain(link, why);
		snprintf(reason, sizeof(reason), "no answer for %llu s: %s", limit_s, why);
	} else if (link->verdict == MESH_REFUSAL_NO_DATA) {
		snprintf(reason, sizeof(reason),
			 "it has acknowledged no data for %llu s, though small packets get "
			 "through: large frames are lost (is the MTU of both NICs the same?)",
			 limit_s);
	} else {
		snprintf(reason, sizeof(reason),
			 "no RDMA write has been answered on %s for %llu s, though TCP gets "
			 "through: does a firewall drop UDP port 4791, or is the RDMA device gone?",
			 link->domain->nic->netdev, limit_s);
	}
	mesh_link_lose(peer, reason, link->verdict);
}

/* Its own end of the connection is found by the port. */
MESH_HOLDS(process)
static void port_report(struct mesh_peer *peer, uint64_t now_ms)
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

/* Returns false if a greeting that the provider holds points to the peer, or it is being fenced. */
MESH_HOLDS(process)
static bool peer_try_free(struct mesh_peer *peer)
{
	mesh_peer_greeting_drop(peer);
	if (atomic_load(&peer->greetings) || peer->fence)
		return false;
	mesh_peer_attempt_end(peer);
	mesh_peer_free(peer);
	return true;
}

/* True for an attempt without users, and for a lost peer without users. */
MESH_HOLDS(process)
static bool peer_is_unwanted(const struct mesh_peer *peer)
{
	return !peer->users &&
	       (peer->state == MESH_PEER_LOST || (!peer->incoming && peer->state != MESH_PEER_UP));
}

/* How long the peer's attempt may stay in its state; NEVER: only an event ends that. */
MESH_HOLDS(process)
static uint64_t state_limit_ms(const struct mesh_peer *peer)
{
	if (peer->state < MESH_PEER_GREETING)
		return SILENCE_MS;
	if (peer->state > MESH_PEER_GREETING)
		return NEVER;
	return peer->incoming ? peer->process->config.connect_timeout_s * 1000 + SILENCE_MS
			      : MESH_DIAL_MS;
}

/* A HELLO or a greeting can be lost: the next attempt sends both again. */
MESH_HOLDS(process)
static void attempt_expired(struct mesh_peer *peer)
{
	char reason[MESH_RDMA_ERROR_MAX] = "its greeting did not arrive through the fabric";

	if (peer->state == MESH_PEER_CONNECTING)
		mesh_peer_errno_retry(peer, -ETIMEDOUT);
	else if (peer->state == MESH_PEER_OPENING)
		mesh_peer_retry(peer, "libfabric takes too long to open our NIC for it");
	else if (peer->state == MESH_PEER_HELLO && peer->incoming)
		mesh_peer_retry(peer, "it connected to the control port and sent nothing");
	else if (peer->state == MESH_PEER_HELLO)
		mesh_peer_retry(peer, "it accepts the connection and sends nothing: is its process "
				      "stopped, or does another program use that port?");
	else if (!peer->incoming)
		mesh_silence_explain(peer->domain, peer->address.port, 0, reason);
	if (peer->state == MESH_PEER_GREETING)
		mesh_peer_retry(peer, reason);
}

/* When the peer needs the next check; NEVER: after an event. */
MESH_HOLDS(process)
static uint64_t peer_due(const struct mesh_peer *peer, uint64_t now_ms)
{
	if (peer_is_unwanted(peer))
		return now_ms + MESH_ENGINE_POLL_MS; /* the provider still holds a greeting */
	if (peer->state == MESH_PEER_GREETING ||
	    (peer->state == MESH_PEER_LOST && (peer->fence || !peer->fenced)))
		return now_ms + MESH_ENGINE_POLL_MS;
	if (peer->state == MESH_PEER_UP && peer->port_ms)
		return peer->port_ms;
	return peer->state < MESH_PEER_GREETING ? peer->state_ms + SILENCE_MS + 1 : NEVER;
}

MESH_HOLDS(process)
static void next_check_set(struct mesh_peer *peer, uint64_t now_ms)
{
	uint64_t due_ms = peer_due(peer, now_ms);

	if (due_ms == NEVER)
		mesh_engine_timer_cancel(&peer->process->engine, &peer->timer);
	else
		mesh_engine_timer_set(&peer->process->engine, &peer->timer, due_ms);
}

void mesh_peer_tick(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_peer *peer = mesh_container_of(timer, struct mesh_peer, timer);

	if (peer->state != MESH_PEER_LOST && mesh_peer_is_choked(peer))
		mesh_link_lose(peer, "it does not read its control connection",
			       MESH_REFUSAL_BROKEN);
	if (peer->link && peer->link->verdict)
		dead_link_lose(peer);
	if (peer->state == MESH_PEER_GREETING)
		greeting_check(peer, now_ms);
	if (mesh_clock_elapsed_ms(peer->state_ms, now_ms) > state_limit_ms(peer))
		attempt_expired(peer);
	/* What is in flight arrives within a moment; before it is up there is nothing. */
	if (peer->state == MESH_PEER_LOST && !peer->fenced &&
	    (peer->failed_in != MESH_PEER_UP ||
	     mesh_clock_elapsed_ms(peer->state_ms, now_ms) >= MESH_LINK_FRAME_MS))
		mesh_peer_bury(peer);
	if (peer->fence)
		mesh_peer_fence(peer);
	port_report(peer, now_ms);
	if (!peer_is_unwanted(peer) || !peer_try_free(peer))
		next_check_set(peer, now_ms);
}

/* ---- ways ------------------------------------------------------------------------------------ */

void mesh_way_listener_set(struct mesh_way *way, const struct mesh_handle *handle)
{
	way->control_port = handle->control_port;
	way->listen_id = handle->listen_id;
	way->cookie = handle->cookie;
}

bool mesh_way_of_pair(const struct mesh_process *process, const struct mesh_handle *handle,
		      const struct mesh_path_candidate *pair, struct mesh_way *way)
{
	int nic = process->endpoints[pair->local].nic;

	mesh_process_assert_locked(process);
	*way = (struct mesh_way){
		.index = mesh_process_domain_index(process, nic, pair->provider),
		.address = handle->endpoints[pair->remote],
		.routed = mesh_path_class_is_routed(pair->class),
		.needs_carrier = handle->node_id != process->node_id,
	};
	way->address.provider = pair->provider;
	mesh_way_listener_set(way, handle);
	return way->index >= 0;
}

/* ---- dials ----------------------------------------------------------------------------------- */

/* Learns the state, which follows from the peer's: no other code sets it. */
MESH_HOLDS(process)
static enum mesh_dial_state state_learn(struct mesh_dial *dial)
{
	const struct mesh_peer *peer = dial->peer;

	if (!peer && !dial->process)
		dial->state = MESH_DIAL_REST;
	else if (!peer)
		dial->state = dial->error ? MESH_DIAL_DEAD : MESH_DIAL_OPENING;
	else if (peer->state == MESH_PEER_UP)
		dial->state = MESH_DIAL_UP;
	else if (peer->state == MESH_PEER_LOST && (peer->refusal || !peer->retry_ms))
		dial->state = MESH_DIAL_DEAD;
	else
		dial->state = MESH_DIAL_TRYING;
	return dial->state;
}

MESH_HOLDS(process)
static bool lacks_carrier(const struct mesh_dial *dial)
{
	return dial->way.needs_carrier &&
	       !mesh_process_carrier_look(dial->process, mesh_way_dev(&dial->way));
}

/* Why our domain cannot be used. */
MESH_HOLDS(process)
static int domain_error(const struct mesh_dial *dial)
{
	return dial->process->dev_away[dial->way.index] || lacks_carrier(dial) ? -ENETDOWN
									       : -ENODEV;
}

/* Connects, also again, once our domain is open. */
MESH_HOLDS(process)
static void attempt_begin(struct mesh_dial *dial, uint64_t now_ms)
{
	struct mesh_process *process = dial->process;
	const struct mesh_way *way = &dial->way;
	struct mesh_peer *failed = dial->peer;

	if (!process->domains[way->index] && process->events->opens(process, way->index))
		return;
	dial->peer = NULL;
	dial->error = process->domains[way->index] ? peer_get(process, way, failed, &dial->peer)
						   : domain_error(dial);
	if (failed)
		mesh_peer_put(failed);
	else
		dial->since_ms = now_ms;
}

int mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
		    const struct mesh_way *way, uint64_t now_ms)
{
	int ret = -ENETDOWN;

	mesh_process_assert_locked(process);
	dial->process = process;
	dial->way = *way;
	dial->since_ms = now_ms;
	if (!lacks_carrier(dial)) {
		attempt_begin(dial, now_ms);
		state_learn(dial);
		ret = dial->error;
	}
	if (ret)
		mesh_dial_end(dial);
	return ret;
}

enum mesh_dial_state mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms)
{
	enum mesh_dial_state state = state_learn(dial);

	if (state == MESH_DIAL_OPENING ||
	    (state == MESH_DIAL_TRYING && dial->peer->state == MESH_PEER_LOST &&
	     now_ms >= dial->peer->retry_ms)) {
		attempt_begin(dial, now_ms);
		state = state_learn(dial);
	}
	return state;
}

bool mesh_dial_is_vain(const struct mesh_dial *dial, uint64_t now_ms)
{
	uint64_t age_ms = mesh_clock_elapsed_ms(dial->since_ms, now_ms);

	if (dial->state == MESH_DIAL_OPENING)
		return age_ms >= 3 * MESH_DIAL_MS;
	if (dial->state != MESH_DIAL_TRYING)
		return dial->state == MESH_DIAL_DEAD;
	return dial->peer->first_refused_ms || age_ms >= MESH_DIAL_MS;
}

void mesh_dial_end(struct mesh_dial *dial)
{
	if (dial->peer)
		mesh_peer_put(dial->peer);
	*dial = (struct mesh_dial){0};
}
