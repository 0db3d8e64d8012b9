/* SPDX-License-Identifier: Apache-2.0 */
/* peer_life.c - the life of a peer: it connects, sends HELLO, greets, retries, ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/random.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_frames.h"
#include "control/peer_greeting.h"
#include "control/peer_life.h"
#include "control/peer_send.h"
#include "control/socket.h"
#include "fabric/breakage.h"
#include "nic/rdma_error.h"

/* A stranger that connects and sends nothing is disconnected after this. */
#define SILENCE_MS 10000
/* An address that gave no answer is remembered for this long. */
#define SILENCE_MEMORY_MS 30000
/* If a greeting is not answered within this, the attempt starts again. */
#define GREETING_MS 3000
/* After the control connection has ended, messages in flight may arrive for this long. */
#define GRACE_MS 500

/* ---- the socket ------------------------------------------------------------------------ */

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

	peer->started_ms = mesh_clock_ms();
	if (!peer->silent_ms)
		peer->silent_ms = peer->started_ms;
	mesh_peer_state_set(peer, MESH_PEER_CONNECTING);
	fd = mesh_control_socket_connect(&peer->domain->nic->source, peer->address.addr,
					 peer->control_port,
					 peer->process->config.dead_peer_timeout_s);
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
	socklen_t len = sizeof(int);
	int error = 0;

	getsockopt(peer->watch.fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		errno_retry(peer, -error);
		return;
	}
	peer->first_refused_ms = 0;
	peer->silent_ms = 0;
	mesh_engine_rewatch(&peer->process->engine, &peer->watch, EPOLLIN);
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	mesh_peer_hello_send(peer);
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
	if (error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH) {
		mesh_link_timed_out(peer, error);
		return;
	}
	snprintf(reason, sizeof(reason), "its process ended, or closed the network plugin");
	if (error && error != -ECONNRESET && error != -EPIPE)
		mesh_control_errno_explain(error, reason, sizeof(reason));
	mesh_peer_lose(peer, reason);
}

MESH_HOLDS(process)
static void peer_read(struct mesh_peer *peer)
{
	ssize_t n;

	n = recv(peer->watch.fd, peer->in + peer->in_size, sizeof(peer->in) - peer->in_size, 0);
	if (n > 0) {
		peer->in_size += (size_t)n;
		mesh_peer_frames_handle(peer);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	connection_ended(peer, n ? -errno : 0);
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

/* ---- making and freeing ---------------------------------------------------------------- */

MESH_HOLDS(process)
static int peer_alloc(struct mesh_process *process, struct mesh_domain *domain,
		      struct mesh_peer **made)
{
	struct mesh_peer *peer = calloc(1, sizeof(*peer));
	int ret;

	if (!peer)
		return -ENOMEM;
	peer->process = process;
	peer->domain = domain;
	peer->watch = (struct mesh_watch){.fd = -1, .ready = peer_ready};
	peer->sink.message = mesh_peer_greeting_arrived;
	ret = mesh_random(&peer->sink.token, sizeof(peer->sink.token));
	if (!ret)
		ret = mesh_sink_add(domain, &peer->sink);
	if (ret) {
		free(peer);
		return ret;
	}
	peer->has_sink = true;
	LIST_INIT(&peer->user_list);
	LIST_INSERT_HEAD(&process->peers, peer, entry);
	*made = peer;
	return 0;
}

int mesh_peer_get(struct mesh_process *process, struct mesh_domain *domain,
		  const struct mesh_endpoint_addr *address, uint16_t control_port,
		  uint32_t listen_id, uint64_t cookie, struct mesh_peer **peer)
{
	struct mesh_peer *found;
	int ret;

	mesh_process_assert_locked(process);
	LIST_FOREACH(found, &process->peers, entry) {
		if (!found->incoming && found->state != MESH_PEER_LOST && found->domain == domain &&
		    found->control_port == control_port && !found->refusal &&
		    mesh_addr_equal(&found->address.addr, &address->addr))
			break;
	}
	if (!found) {
		ret = peer_alloc(process, domain, &found);
		if (ret)
			return ret;
		found->address = *address;
		found->control_port = control_port;
		found->listen_id = listen_id;
		found->cookie = cookie;
		attempt_start(found);
	}
	if (found->state != MESH_PEER_UP) {
		/* The listener that admitted us before may be closed by now. */
		found->listen_id = listen_id;
		found->cookie = cookie;
	}
	found->users++;
	*peer = found;
	return 0;
}

int mesh_peer_accept(struct mesh_process *process, struct mesh_domain *domain, int fd,
		     const struct mesh_addr *from)
{
	struct mesh_peer *peer;
	int ret;

	ret = peer_alloc(process, domain, &peer);
	if (ret)
		return ret;
	peer->incoming = true;
	peer->address.addr = *from;
	peer->started_ms = mesh_clock_ms();
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	mesh_control_keepalive_set(fd, process->config.dead_peer_timeout_s);
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
	mesh_engine_unwatch(&peer->process->engine, &peer->watch);
	mesh_remote_close(peer->domain, peer->remote);
	LIST_REMOVE(peer, entry);
	free(peer->out);
	free(peer);
}

/* ---- what is due ----------------------------------------------------------------------- */

/* What the peer sent before its end has had time to arrive. */
MESH_HOLDS(process)
static void peer_bury(struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	peer->buried = true;
	mesh_domain_lock(peer->domain);
	LIST_FOREACH(user, &peer->user_list, entry)
		user->ops->lost(user);
	if (peer->remote)
		mesh_remote_lose(peer->domain, peer->remote);
	mesh_domain_unlock(peer->domain);
}

bool mesh_peer_urgent(const struct mesh_peer *peer)
{
	return peer->state == MESH_PEER_GREETING ||
	       (peer->state == MESH_PEER_LOST && !peer->buried);
}

/* A greeting that the provider holds points to the peer: then the next tick retries. */
MESH_HOLDS(process)
static void peer_try_free(struct mesh_peer *peer)
{
	mesh_peer_greeting_drop(peer);
	if (!atomic_load(&peer->greetings))
		mesh_peer_free(peer);
}

/* True for an attempt without users, and for a lost peer without users. */
MESH_HOLDS(process)
static bool peer_is_unwanted(const struct mesh_peer *peer, uint64_t now_ms)
{
	if (peer->users)
		return false;
	/* Remembers that nothing answers there, so that the next connection waits for less time. */
	if (peer->silent_ms && mesh_clock_elapsed_ms(peer->silent_ms, now_ms) < SILENCE_MEMORY_MS)
		return false;
	return peer->state == MESH_PEER_LOST || (!peer->incoming && peer->state != MESH_PEER_UP);
}

/* Disconnects strangers, and peers whose greeting does not arrive. */
MESH_HOLDS(process)
static void incoming_check(struct mesh_peer *peer, uint64_t now_ms)
{
	struct mesh_log_limit *limit = &peer->process->limits.no_descriptor;
	uint64_t age_ms = now_ms - peer->started_ms;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (peer->state == MESH_PEER_GREETING && age_ms > GREETING_MS && !peer->stuck_warned &&
	    mesh_descriptors_exhausted()) {
		peer->stuck_warned = true;
		if (mesh_log_limit_pass(limit, 1, now_ms, more))
			mesh_warn("%s cannot connect, because no file descriptor is left for "
				  "it: " MESH_DESCRIPTORS_RAISE "%s",
				  mesh_peer_text(peer, text), more);
	}
	if (peer->state == MESH_PEER_HELLO && age_ms > SILENCE_MS)
		mesh_peer_lose(peer, "it connected to the control port and sent nothing");
	else if (peer->state == MESH_PEER_GREETING &&
		 age_ms > peer->process->config.connect_timeout_s * 1000 + SILENCE_MS)
		mesh_peer_lose(peer, "its greeting did not arrive through the fabric");
}

/* A HELLO or a greeting can be lost; the next attempt sends both again. */
MESH_HOLDS(process)
static void outgoing_check(struct mesh_peer *peer, uint64_t now_ms)
{
	uint64_t age_ms = mesh_clock_elapsed_ms(peer->state_ms, now_ms);
	char reason[MESH_RDMA_ERROR_MAX];

	if (peer->state == MESH_PEER_GREETING && age_ms > GREETING_MS) {
		mesh_remote_silence_explain(peer->domain, peer->remote, peer->address.port, 0,
					    reason);
		mesh_peer_retry(peer, reason);
	} else if (peer->state == MESH_PEER_HELLO && age_ms > SILENCE_MS) {
		mesh_peer_retry(peer, "it accepts the connection and sends nothing: is its process "
				      "stopped, or does another program use that port?");
	}
}

void mesh_peer_tick(struct mesh_peer *peer, uint64_t now_ms)
{
	/* Operations in flight would never complete. A peer that is not up reaches its deadline. */
	if (peer->state == MESH_PEER_UP && peer->domain->broken)
		mesh_peer_lose(peer, "our NIC's completion queue cannot be read");
	if (peer->state == MESH_PEER_GREETING)
		mesh_peer_greeting_check(peer);
	if (peer->incoming)
		incoming_check(peer, now_ms);
	else if (peer->users)
		outgoing_check(peer, now_ms);
	if (peer->state == MESH_PEER_RETRY && peer->users && !peer->refusal &&
	    now_ms >= peer->retry_ms)
		attempt_start(peer);
	if (peer->state == MESH_PEER_LOST && !peer->buried &&
	    mesh_clock_elapsed_ms(peer->lost_ms, now_ms) >= GRACE_MS)
		peer_bury(peer);
	if (peer_is_unwanted(peer, now_ms))
		peer_try_free(peer);
}
