/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_life.c - the life of a peer: it connects, sends HELLO, greets, retries, ends; and dials,
 * which make a way to another process real.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
#include "nic/rdma_port.h"
#include "system/tcp_look.h"

/* Nothing answers an attempt to connect, or one that has connected sends nothing: it is over. */
#define SILENCE_MS 10000
#define NEVER UINT64_MAX

/* ---- the socket ------------------------------------------------------------------------------ */

/*
 * Starts to connect a socket that is bound to our NIC's address. Returns its descriptor, or a
 * negative errno.
 */
static int socket_connect(const struct mesh_peer *peer)
{
	const struct mesh_addr *source = &peer->domain->nic->source;
	struct mesh_addr target = peer->address.addr;
	struct sockaddr_storage from, to;
	socklen_t from_len, to_len;
	const int on = 1;
	int fd, ret;

	target.scope_id = source->scope_id;
	from_len = mesh_addr_to_sockaddr(source, 0, &from);
	to_len = mesh_addr_to_sockaddr(&target, peer->control_port, &to);
	fd = mesh_descriptor_hide(
		socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&from, from_len) &&
	    (!connect(fd, (struct sockaddr *)&to, to_len) || errno == EINPROGRESS))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

MESH_HOLDS(process)
static void errno_retry(struct mesh_peer *peer, int error)
{
	char reason[MESH_PEER_REASON_MAX];

	if (error == -ECONNREFUSED) {
		peer->silent_ms = 0;
		if (!peer->first_refused_ms)
			peer->first_refused_ms = mesh_clock_ms();
	} else {
		peer->first_refused_ms = 0;
	}
	mesh_control_errno_explain(error, reason, sizeof(reason));
	mesh_peer_retry(peer, reason);
}

MESH_HOLDS(process)
static void peer_ready(struct mesh_watch *watch, uint32_t events);

MESH_HOLDS(process)
static void attempt_start(struct mesh_peer *peer)
{
	int fd, ret;

	mesh_peer_state_set(peer, MESH_PEER_CONNECTING);
	if (!peer->silent_ms)
		peer->silent_ms = peer->state_ms;
	fd = socket_connect(peer);
	if (fd < 0) {
		errno_retry(peer, fd);
		return;
	}
	peer->watch.fd = fd;
	ret = mesh_engine_watch(&peer->process->engine, &peer->watch, EPOLLIN | EPOLLOUT);
	if (ret)
		errno_retry(peer, ret);
}

MESH_HOLDS(process)
static void connect_finish(struct mesh_peer *peer)
{
	int error = mesh_tcp_error_take(peer->watch.fd);

	if (error) {
		errno_retry(peer, error);
		return;
	}
	peer->first_refused_ms = 0;
	peer->silent_ms = 0;
	if (!mesh_link_is_quiet(peer)) {
		mesh_peer_retry(peer, "what was lost on this link has not ended yet");
		return;
	}
	if (!mesh_endpoint_is_open(peer->domain)) {
		mesh_peer_retry(peer, MESH_ENDPOINT_OPENING);
		return;
	}
	mesh_engine_rewatch(&peer->process->engine, &peer->watch, EPOLLIN);
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	mesh_peer_hello_send(peer);
}

/* Handles what can be read at once. Returns as recv(). */
MESH_HOLDS(process)
static ssize_t bytes_take(struct mesh_peer *peer)
{
	ssize_t n = recv(peer->watch.fd, peer->in + peer->in_size, sizeof(peer->in) - peer->in_size,
			 MSG_DONTWAIT);

	if (n > 0) {
		peer->in_size += (size_t)n;
		mesh_peer_frames_handle(peer);
	}
	return n;
}

/*
 * Handles what the peer's kernel has delivered so far: later bytes do not count, so that a peer
 * that sends without end does not keep the engine. An end of the connection is left to the next
 * event.
 */
MESH_HOLDS(process)
static void unread_handle(struct mesh_peer *peer)
{
	int left = 0;
	ssize_t n = 1;

	if (ioctl(peer->watch.fd, FIONREAD, &left))
		return;
	for (; left > 0 && n > 0 && peer->watch.fd >= 0; left -= (int)n)
		n = bytes_take(peer);
}

void mesh_peers_unread_handle(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->state == MESH_PEER_UP)
			unread_handle(peer);
	}
}

/*
 * The connection has ended: if the peer was not up, the attempt has failed; else the peer is lost.
 */
MESH_HOLDS(process)
static void connection_ended(struct mesh_peer *peer, int error)
{
	char reason[MESH_PEER_REASON_MAX];

	if (peer->state != MESH_PEER_UP && !peer->incoming) {
		errno_retry(peer, error ? error : -ECONNRESET);
		return;
	}
	if (peer->state != MESH_PEER_UP) {
		mesh_peer_lose(peer, "its attempt to connect is over");
		return;
	}
	mesh_peers_unread_handle(peer->process);
	if (peer->state != MESH_PEER_UP)
		return; /* one of these frames has lost its link */
	if (!error) {
		/* Only the end of a process, or of the plugin in it, comes without a word. */
		mesh_peer_process_ended(peer, "its process ended, or closed the network plugin");
		return;
	}
	mesh_control_errno_explain(error, reason, sizeof(reason));
	if (!mesh_peer_is_resumed(peer))
		mesh_peer_lose(peer, reason);
	else /* if its process has ended, its other connections end as well, within a moment */
		mesh_link_lose(peer,
			       error == -ECONNRESET || error == -EPIPE
				       ? "its control connection was reset"
				       : reason,
			       MESH_REFUSAL_BROKEN);
}

MESH_HOLDS(process)
static void peer_read(struct mesh_peer *peer)
{
	ssize_t n = bytes_take(peer);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		connection_ended(peer, n ? -errno : peer->send_error);
}

static void peer_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_peer *peer = mesh_container_of(watch, struct mesh_peer, watch);

	if (peer->state == MESH_PEER_CONNECTING) {
		connect_finish(peer);
		return;
	}
	if (events & EPOLLOUT)
		mesh_peer_flush(peer);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && peer->watch.fd >= 0)
		peer_read(peer);
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
	peer->watch = (struct mesh_watch){.fd = -1, .ready = peer_ready};
	peer->timer.expired = mesh_peer_tick;
	peer->sink.message = mesh_peer_greeting_arrived;
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

int mesh_peer_get(struct mesh_process *process, const struct mesh_way *way,
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
		attempt_start(found);
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
		errno_retry(peer, -ETIMEDOUT);
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
		mesh_link_dead_lose(peer);
	if (peer->state == MESH_PEER_GREETING)
		mesh_peer_greeting_check(peer, now_ms);
	if (mesh_clock_elapsed_ms(peer->state_ms, now_ms) > state_limit_ms(peer))
		attempt_expired(peer);
	/* What is in flight arrives within a moment; before it is up there is nothing. */
	if (peer->state == MESH_PEER_LOST && !peer->fenced &&
	    (peer->failed_in != MESH_PEER_UP ||
	     mesh_clock_elapsed_ms(peer->state_ms, now_ms) >= MESH_LINK_FRAME_MS))
		mesh_peer_bury(peer);
	if (peer->fence)
		mesh_peer_fence(peer);
	mesh_peer_port_report(peer, now_ms);
	if (!peer_is_unwanted(peer) || !peer_try_free(peer))
		next_check_set(peer, now_ms);
}

/* ---- ways ---------------------------------------------------------------------------------- */

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

/* ---- dials --------------------------------------------------------------------------------- */

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
static void attempt_begin(struct mesh_dial *dial, bool again, uint64_t now_ms)
{
	struct mesh_process *process = dial->process;
	const struct mesh_way *way = &dial->way;
	struct mesh_peer *failed = dial->peer;

	if (!process->domains[way->index] && process->events->opens(process, way->index, again))
		return;
	dial->peer = NULL;
	dial->error = process->domains[way->index]
			      ? mesh_peer_get(process, way, failed, &dial->peer)
			      : domain_error(dial);
	if (failed)
		mesh_peer_put(failed);
	else
		dial->since_ms = now_ms;
}

int mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
		    const struct mesh_way *way, bool again, uint64_t now_ms)
{
	int ret = -ENETDOWN;

	mesh_process_assert_locked(process);
	dial->process = process;
	dial->way = *way;
	dial->since_ms = now_ms;
	if (!lacks_carrier(dial)) {
		attempt_begin(dial, again, now_ms);
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
		attempt_begin(dial, false, now_ms);
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
