/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - the life of a peer: connects, greets, tries again, is lost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/random.h"
#include "fabric/breakage.h"
#include "fabric/provider_sockets.h"
#include "nic/rdma_error.h"
#include "transport/comm.h"
#include "transport/accept_wait.h"
#include "transport/counters.h"
#include "transport/link.h"
#include "transport/node.h"
#include "transport/peer.h"
#include "transport/peer_internal.h"

/* Between two attempts to connect. Short: a refusal comes at once while a peer is starting. */
#define RETRY_MS 250
/* A stranger who connects and says nothing is shown out after this. */
#define SILENCE_MS 10000
/* An address that gave no answer is remembered for so long. */
#define SILENCE_MEMORY_MS 30000
/* The fabric answers a greeting within this, or the attempt starts afresh. */
#define GREETING_MS 3000
/* After the control connection ended: for what the peer had sent through the fabric before. */
#define GRACE_MS 500

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} peer_states[MESH_PEER_STATES] = {
	[MESH_PEER_CONNECTING] = {"connecting", 1 << MESH_PEER_CONNECTING | 1 << MESH_PEER_RETRY},
	[MESH_PEER_HELLO] = {"waiting for hello", 1 << MESH_PEER_CONNECTING},
	[MESH_PEER_GREETING] = {"greeting", 1 << MESH_PEER_HELLO},
	[MESH_PEER_UP] = {"up", 1 << MESH_PEER_GREETING},
	[MESH_PEER_RETRY] = {"waiting to try again", 1 << MESH_PEER_CONNECTING |
							     1 << MESH_PEER_HELLO |
							     1 << MESH_PEER_GREETING},
	[MESH_PEER_LOST] = {"lost", 0xff},
};

/* For `fi_mesh watch`: a peer that ends when nobody uses it any more is not lost. */
static void state_count(const struct mesh_peer *peer, enum mesh_peer_state state)
{
	struct mesh_process_counters *counters = peer->node->counters;

	if (state == MESH_PEER_UP)
		mesh_count_event(&counters->peers_up);
	else if (state == MESH_PEER_RETRY)
		mesh_count_event(&counters->retries);
	else if (state == MESH_PEER_LOST && peer->state == MESH_PEER_UP && peer->users)
		mesh_count_event(&counters->peers_lost);
}

void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state)
{
	bool legal;

	mesh_lock_assert_held(&peer->node->lock);
	legal = peer_states[state].may_follow & 1 << peer->state;
	assert(legal);
	(void)legal;
	mesh_trace("peer %s %s: %s -> %s", peer->incoming ? "from" : "to",
		   peer->name[0] ? peer->name : "(unknown)", peer_states[peer->state].name,
		   peer_states[state].name);
	state_count(peer, state);
	if (state <= MESH_PEER_UP && state > peer->failed_in)
		peer->reason[0] = '\0';
	peer->state = state;
	peer->state_ms = mesh_clock_ms();
	/* Whatever waits for this peer looks at it again. */
	mesh_engine_wake(&peer->node->engine);
}

const char *mesh_peer_text(const struct mesh_peer *peer, char *text)
{
	char address[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(&peer->address.addr, address);
	if (peer->name[0])
		snprintf(text, MESH_PEER_TEXT_MAX, "node %s (%s)", peer->name, address);
	else
		snprintf(text, MESH_PEER_TEXT_MAX, "%s", address);
	return text;
}

/* ---- greeting: the poller's part ------------------------------------------------------- */

/* domain->lock held: sets a flag and leaves the rest to the engine. */
static void greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
			     const void *payload)
{
	struct mesh_peer *peer = mesh_container_of(sink, struct mesh_peer, sink);
	uint8_t expected = peer->incoming ? MESH_MESSAGE_GREET : MESH_MESSAGE_GREET_REPLY;

	(void)payload;
	if (header->type != expected)
		return;
	atomic_store(&peer->greeted, true);
	mesh_engine_wake(&peer->node->engine);
}

/* domain->lock held, like greeting_arrived(). The peer lives on while its remote is in use. */
static void greeting_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_peer *peer = buffer->owner;

	if (error)
		atomic_store(&peer->greet_error, error);
	atomic_fetch_sub(&peer->greetings, 1); /* last: now the peer may be freed */
}

static int greeting_send(struct mesh_peer *peer, enum mesh_message_type type)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(peer->domain, peer->remote);
	struct mesh_message_header header = {
		.type = (uint8_t)type,
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
	if (!peer->incoming && greeting_send(peer, MESH_MESSAGE_GREET))
		mesh_peer_retry(peer, "no message buffer was free for the greeting");
}

static void greeting_check(struct mesh_peer *peer)
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
	if (peer->incoming && greeting_send(peer, MESH_MESSAGE_GREET_REPLY))
		return; /* at the next tick */
	mesh_peer_state_set(peer, MESH_PEER_UP);
	mesh_link_join(peer);
	if (!peer->incoming)
		mesh_peer_port_send(peer);
}

/* ---- the socket ------------------------------------------------------------------------ */

/*
 * A greeting that the provider did not take yet ends here: it belongs to an attempt that is over.
 * Else it would be tried again at every poll, and keep its buffer and the peer.
 */
static void greeting_drop(struct mesh_peer *peer)
{
	if (!peer->remote)
		return;
	mesh_lock_take(&peer->domain->lock);
	mesh_remote_lose(peer->domain, peer->remote);
	mesh_lock_release(&peer->domain->lock);
}

void mesh_peer_retry(struct mesh_peer *peer, const char *reason)
{
	if (peer->incoming) {
		mesh_peer_lose(peer, reason);
		return;
	}
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	mesh_engine_unwatch(&peer->node->engine, &peer->watch);
	greeting_drop(peer);
	peer->retry_ms = mesh_clock_ms() + RETRY_MS;
	peer->in_size = 0;
	peer->out_size = 0;
	peer->failed_in = peer->state;
	mesh_peer_state_set(peer, MESH_PEER_RETRY);
}

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
	mesh_peer_errno_explain(error, reason);
	mesh_peer_retry(peer, reason);
}

static void peer_ready(struct mesh_watch *watch, uint32_t events);

static void attempt_start(struct mesh_peer *peer)
{
	int fd, ret;

	peer->started_ms = mesh_clock_ms();
	if (!peer->silent_ms)
		peer->silent_ms = peer->started_ms;
	mesh_peer_state_set(peer, MESH_PEER_CONNECTING);
	fd = mesh_peer_socket_connect(peer);
	if (fd < 0) {
		errno_retry(peer, fd);
		return;
	}
	peer->watch.fd = fd;
	ret = mesh_engine_watch(&peer->node->engine, &peer->watch, EPOLLIN | EPOLLOUT);
	if (ret)
		errno_retry(peer, ret);
}

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
	mesh_engine_rewatch(&peer->node->engine, &peer->watch, EPOLLIN);
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	mesh_peer_hello_send(peer);
}

/* The connection ended. Before it was up that is a failed attempt; afterwards the peer is gone. */
static void connection_ended(struct mesh_peer *peer, int error)
{
	char reason[MESH_PEER_REASON_MAX];

	if (peer->state != MESH_PEER_UP && !peer->incoming) {
		errno_retry(peer, error ? error : -ECONNRESET);
		return;
	}
	if (error == -ETIMEDOUT || error == -EHOSTUNREACH) {
		mesh_link_timed_out(peer);
		return;
	}
	snprintf(reason, sizeof(reason), "its process ended, or closed the network plugin");
	if (error && error != -ECONNRESET && error != -EPIPE)
		mesh_peer_errno_explain(error, reason);
	mesh_peer_lose(peer, reason);
}

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

/* ---- making and ending ----------------------------------------------------------------- */

static int peer_alloc(struct mesh_node *node, struct mesh_domain *domain, struct mesh_peer **made)
{
	struct mesh_peer *peer = calloc(1, sizeof(*peer));
	int ret;

	if (!peer)
		return -ENOMEM;
	peer->node = node;
	peer->domain = domain;
	peer->watch = (struct mesh_watch){.fd = -1, .ready = peer_ready};
	peer->sink.message = greeting_arrived;
	ret = mesh_random(&peer->sink.token, sizeof(peer->sink.token));
	if (!ret)
		ret = mesh_sink_add(domain, &peer->sink);
	if (ret) {
		free(peer);
		return ret;
	}
	peer->has_sink = true;
	LIST_INSERT_HEAD(&node->peers, peer, entry);
	*made = peer;
	return 0;
}

int mesh_peer_get(struct mesh_node *node, struct mesh_domain *domain,
		  const struct mesh_endpoint_addr *address, uint16_t control_port,
		  uint32_t listen_id, uint64_t cookie, struct mesh_peer **peer)
{
	struct mesh_peer *found;
	int ret;

	mesh_lock_assert_held(&node->lock);
	LIST_FOREACH(found, &node->peers, entry) {
		if (!found->incoming && found->state != MESH_PEER_LOST && found->domain == domain &&
		    found->control_port == control_port && !found->refusal &&
		    mesh_addr_equal(&found->address.addr, &address->addr))
			break;
	}
	if (!found) {
		ret = peer_alloc(node, domain, &found);
		if (ret)
			return ret;
		found->address = *address;
		found->control_port = control_port;
		found->listen_id = listen_id;
		found->cookie = cookie;
		attempt_start(found);
	}
	if (found->state != MESH_PEER_UP) {
		/* The listener that let us in before may be closed by now. */
		found->listen_id = listen_id;
		found->cookie = cookie;
	}
	found->users++;
	*peer = found;
	return 0;
}

bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie)
{
	return peer->refusal &&
	       (peer->refusal != MESH_REFUSAL_COOKIE || peer->told_cookie == cookie);
}

int mesh_peer_accept(struct mesh_node *node, struct mesh_domain *domain, int fd,
		     const struct mesh_addr *from)
{
	struct mesh_peer *peer;
	int ret;

	ret = peer_alloc(node, domain, &peer);
	if (ret)
		return ret;
	peer->incoming = true;
	peer->address.addr = *from;
	peer->started_ms = mesh_clock_ms();
	mesh_peer_state_set(peer, MESH_PEER_HELLO);
	mesh_peer_keepalive_set(peer, fd);
	peer->watch.fd = fd;
	ret = mesh_engine_watch(&node->engine, &peer->watch, EPOLLIN);
	if (ret) {
		peer->watch.fd = -1; /* stays the caller's */
		mesh_peer_free(peer);
	}
	return ret;
}

void mesh_peer_use(struct mesh_peer *peer)
{
	mesh_lock_assert_held(&peer->node->lock);
	peer->users++;
}

void mesh_peer_put(struct mesh_peer *peer)
{
	mesh_lock_assert_held(&peer->node->lock);
	peer->users--;
	mesh_engine_wake(&peer->node->engine); /* its tick may free it */
}

static void sink_end(struct mesh_peer *peer)
{
	if (!peer->has_sink)
		return;
	mesh_lock_take(&peer->domain->lock);
	mesh_sink_remove(peer->domain, &peer->sink);
	mesh_lock_release(&peer->domain->lock);
	peer->has_sink = false;
}

void mesh_peer_free(struct mesh_peer *peer)
{
	mesh_lock_assert_held(&peer->node->lock);
	mesh_link_leave(peer);
	sink_end(peer);
	mesh_engine_unwatch(&peer->node->engine, &peer->watch);
	mesh_remote_close(peer->domain, peer->remote);
	LIST_REMOVE(peer, entry);
	free(peer->out);
	free(peer);
}

void mesh_peer_lose(struct mesh_peer *peer, const char *reason)
{
	mesh_lock_assert_held(&peer->node->lock);
	if (peer->state == MESH_PEER_LOST)
		return;
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	mesh_peer_loss_log(peer);
	mesh_accept_wait_peer_lost(peer, peer->told);
	mesh_link_leave(peer);
	sink_end(peer);
	mesh_engine_unwatch(&peer->node->engine, &peer->watch);
	peer->lost_ms = mesh_clock_ms();
	mesh_peer_state_set(peer, MESH_PEER_LOST);
}

/* What it sent before it went has had its time to arrive. */
static void peer_bury(struct mesh_peer *peer)
{
	struct mesh_comm *comm;

	peer->buried = true;
	mesh_lock_take(&peer->domain->lock);
	LIST_FOREACH(comm, &peer->node->comms, entry) {
		if (mesh_comm_uses_peer(comm, peer))
			mesh_comm_peer_lost(comm);
	}
	if (peer->remote)
		mesh_remote_lose(peer->domain, peer->remote);
	mesh_lock_release(&peer->domain->lock);
}

bool mesh_peer_urgent(const struct mesh_peer *peer)
{
	return peer->state == MESH_PEER_GREETING ||
	       (peer->state == MESH_PEER_LOST && !peer->buried);
}

/* A greeting that the provider has points to the peer: then it stays until the next tick. */
static void peer_try_free(struct mesh_peer *peer)
{
	greeting_drop(peer);
	if (!atomic_load(&peer->greetings))
		mesh_peer_free(peer);
}

/* An attempt that nobody waits for any more, or what is left of a lost peer. */
static bool peer_is_unwanted(const struct mesh_peer *peer, uint64_t now_ms)
{
	if (peer->users)
		return false;
	/* The next connection shall know that nobody answers there, and not wait for it as long. */
	if (peer->silent_ms && mesh_clock_elapsed_ms(peer->silent_ms, now_ms) < SILENCE_MEMORY_MS)
		return false;
	return peer->state == MESH_PEER_LOST || (!peer->incoming && peer->state != MESH_PEER_UP);
}

/* Strangers, and those whose greeting does not come through, are shown out. */
static void incoming_check(struct mesh_peer *peer, uint64_t now_ms)
{
	struct mesh_log_limit *limit = &peer->node->limits.no_descriptor;
	uint64_t age_ms = now_ms - peer->started_ms;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (peer->state == MESH_PEER_GREETING && age_ms > GREETING_MS && !peer->stuck_told &&
	    mesh_descriptors_exhausted()) {
		peer->stuck_told = true;
		if (mesh_log_limit_pass(limit, 1, now_ms, more))
			mesh_warn("%s wants to connect, and there is no file descriptor left for "
				  "it: " MESH_DESCRIPTORS_RAISE "%s",
				  mesh_peer_text(peer, text), more);
	}
	if (peer->state == MESH_PEER_HELLO && age_ms > SILENCE_MS)
		mesh_peer_lose(peer, "it connected to the control port and said nothing");
	else if (peer->state == MESH_PEER_GREETING &&
		 age_ms > peer->node->config.connect_timeout_s * 1000 + SILENCE_MS)
		mesh_peer_lose(peer, "its greeting did not come through the fabric");
}

/* A HELLO or a greeting can be lost; the next attempt sends both again. */
static void outgoing_check(struct mesh_peer *peer, uint64_t now_ms)
{
	uint64_t age_ms = mesh_clock_elapsed_ms(peer->state_ms, now_ms);
	char reason[MESH_RDMA_ERROR_MAX];

	if (peer->state == MESH_PEER_GREETING && age_ms > GREETING_MS) {
		mesh_remote_silence_explain(peer->domain, peer->remote, peer->address.port, 0,
					    reason);
		mesh_peer_retry(peer, reason);
	} else if (peer->state == MESH_PEER_HELLO && age_ms > SILENCE_MS) {
		mesh_peer_retry(peer, "it takes the connection and says nothing: is its process "
				      "stopped, or is that not this plugin's port?");
	}
}

void mesh_peer_tick(struct mesh_peer *peer, uint64_t now_ms)
{
	/* What is in flight would never end. A peer that is not up runs into its deadline. */
	if (peer->state == MESH_PEER_UP && peer->domain->broken)
		mesh_peer_lose(peer, "our NIC's completion queue cannot be read");
	if (peer->state == MESH_PEER_GREETING)
		greeting_check(peer);
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
