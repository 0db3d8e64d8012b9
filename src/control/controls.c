/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controls.c - the control connections: the listeners, on one TCP port that is open on the mesh
 * NICs' addresses only, and what is connected, read and sent.
 */
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
#include "base/config.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/retry.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "fabric/endpoint.h"
#include "system/tcp_look.h"
#include "wire/protocol.h"
#include "wire/stats.h"

/*
 * All NICs listen on one port: one of NCCL_MESH_PORTS, or one that the kernel chooses for the
 * first NIC. If another process holds it on a later NIC, the next try gets another port.
 */
#define PORT_TRIES 32
#define BACKLOG 1024
/* At most this many connections may be without a HELLO. */
#define STRANGERS_MAX 256

/* ---- listening ------------------------------------------------------------------------------- */

/*
 * Makes room for one more stranger: the oldest one goes that is silent. A process with the right to
 * connect sends HELLO at once, so it goes only if hundreds of others come meanwhile.
 */
MESH_HOLDS(process)
static void strangers_make_room(struct mesh_process *process)
{
	struct mesh_peer *peer, *oldest = NULL;
	int strangers = 0;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->incoming && peer->state == MESH_PEER_HELLO) {
			oldest = peer; /* each is inserted before the others */
			strangers++;
		}
	}
	if (strangers < STRANGERS_MAX)
		return;
	mesh_count_event(&process->counters->refused);
	mesh_peer_lose(oldest, "it sent nothing, and too many others wait to be known");
}

/* True if accept() may succeed later, without another connection. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void accept_pause(struct mesh_control *control, int error)
{
	struct mesh_log_limit *limit = &control->process->limits.accept_fails;
	uint64_t now_ms = mesh_clock_ms();
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(limit, 1, now_ms, more))
		mesh_warn("cannot accept a peer's connection: %s%s%s", strerror(error),
			  error == EMFILE || error == ENFILE ? "; " MESH_DESCRIPTORS_RAISE : "",
			  more);
	mesh_engine_rewatch(&control->process->engine, &control->watch, 0);
	mesh_engine_timer_set(&control->process->engine, &control->pause,
			      now_ms + MESH_RETRY_MIN_MS);
}

static void pause_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_control *control = mesh_container_of(timer, struct mesh_control, pause);

	(void)now_ms;
	mesh_engine_rewatch(&control->process->engine, &control->watch, EPOLLIN);
}

MESH_HOLDS(process)
static void control_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_control *control = mesh_container_of(watch, struct mesh_control, watch);
	struct mesh_process *process = control->process;
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct mesh_addr address;
	int fd;

	(void)events;
	fd = mesh_descriptor_hide(
		accept4(watch->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (fd < 0) {
		if (is_shortage(errno))
			accept_pause(control, errno);
		return;
	}
	strangers_make_room(process);
	if (mesh_addr_from_sockaddr((struct sockaddr *)&from, len, &address, NULL) ||
	    mesh_peer_accept(process, control->dev, fd, &address)) {
		mesh_count_event(&process->counters->refused);
		mesh_descriptor_close(fd);
	}
}

/*
 * Opens a listening socket on @address. Returns its file descriptor, or a negative errno.
 *
 * A port that is asked for may have old connections in TIME_WAIT, which do not count.
 */
static int socket_listen(const struct mesh_addr *address, uint16_t port)
{
	struct sockaddr_storage sockaddr;
	socklen_t len = mesh_addr_to_sockaddr(address, port, &sockaddr);
	const int on = 1;
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(sockaddr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	/* On Linux accepted connections inherit it: frames do not wait for each other. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&sockaddr, len) && !listen(fd, BACKLOG))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

static int socket_port(int fd, uint16_t *port)
{
	struct sockaddr_storage sockaddr;
	socklen_t len = sizeof(sockaddr);
	struct mesh_addr address;

	if (getsockname(fd, (struct sockaddr *)&sockaddr, &len))
		return -errno;
	return mesh_addr_from_sockaddr((struct sockaddr *)&sockaddr, len, &address, port);
}

MESH_HOLDS(process)
static void control_init(struct mesh_process *process, int dev, int fd)
{
	process->controls[dev] = (struct mesh_control){
		.watch = {.fd = fd, .ready = control_ready},
		.pause = {.expired = pause_expired},
		.process = process,
		.dev = dev,
	};
}

int mesh_control_open(struct mesh_process *process, int dev)
{
	struct mesh_control *control = &process->controls[dev];
	int fd, ret;

	mesh_process_assert_locked(process);
	fd = socket_listen(&process->nics[dev]->source, process->control_port);
	if (fd < 0)
		return fd;
	control_init(process, dev, fd);
	ret = mesh_engine_watch(&process->engine, &control->watch, EPOLLIN);
	if (ret)
		mesh_engine_unwatch(&process->engine, &control->watch);
	return ret;
}

/* Tries once to listen on the same port on every NIC: @port, or 0 for one that is free. */
MESH_HOLDS(process)
static int sockets_open(struct mesh_process *process, uint16_t port)
{
	int dev, ret = 0;

	process->control_port = port;
	for (dev = 0; dev < process->num_devs && !ret; dev++) {
		ret = mesh_control_open(process, dev);
		if (!ret && !process->control_port)
			ret = socket_port(process->controls[dev].watch.fd, &process->control_port);
	}
	return ret;
}

/* @used_up: no port of NCCL_MESH_PORTS is free. */
static void listen_warn(const struct mesh_process *process, bool used_up, int error)
{
	if (used_up)
		mesh_warn("cannot listen for peers: %s; NCCL_MESH_PORTS=%s needs two ports for "
			  "each process of this node, or up to nine between two sites",
			  strerror(-error), process->config.ports);
	else
		mesh_warn("cannot listen for peers: %s", strerror(-error));
}

int mesh_controls_open(struct mesh_process *process)
{
	struct mesh_port_range ports;
	unsigned int tries, max;
	int dev, ret = 0;

	mesh_port_range_parse(process->config.ports, &ports);
	max = ports.first ? mesh_port_range_size(&ports) : PORT_TRIES;
	for (dev = 0; dev < process->num_devs; dev++)
		control_init(process, dev, -1);
	for (tries = 0; tries < max; tries++) {
		ret = sockets_open(process, mesh_port_range_get(&ports, tries));
		if (!ret)
			break;
		mesh_controls_close(process);
		if (ret != -EADDRINUSE)
			break;
	}
	if (ret)
		listen_warn(process, ports.first && ret == -EADDRINUSE, ret);
	return ret;
}

void mesh_controls_close(struct mesh_process *process)
{
	int dev;

	for (dev = 0; dev < process->num_devs; dev++) {
		mesh_engine_timer_cancel(&process->engine, &process->controls[dev].pause);
		mesh_engine_unwatch(&process->engine, &process->controls[dev].watch);
	}
}

/* ---- sending --------------------------------------------------------------------------------- */

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

MESH_HOLDS(process)
static void out_flush(struct mesh_peer *peer)
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
	out_flush(peer);
	mesh_link_sent(peer);
}

/* ---- connecting and reading ------------------------------------------------------------------ */

void mesh_control_errno_explain(int error, char *reason, size_t size)
{
	const char *hint = "";

	if (error == -ECONNREFUSED)
		hint = ": its process has ended, or a firewall refuses";
	else if (error == -ECONNRESET || error == -EPIPE)
		hint = ": its process ended, or closed the network plugin";
	else if (error == -ETIMEDOUT || error == -EHOSTUNREACH)
		hint = ": is the cable in, the peer's link up, and no firewall between?";
	else if (error == -ENETUNREACH || error == -EADDRNOTAVAIL)
		hint = ": did this NIC lose its address or its route?";
	else if (error == -EMFILE || error == -ENFILE)
		hint = ": " MESH_DESCRIPTORS_RAISE;
	snprintf(reason, size, "%s%s", strerror(-error), hint);
}

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

void mesh_peer_errno_retry(struct mesh_peer *peer, int error)
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

void mesh_peer_attempt_start(struct mesh_peer *peer)
{
	int fd, ret;

	mesh_peer_state_set(peer, MESH_PEER_CONNECTING);
	if (!peer->silent_ms)
		peer->silent_ms = peer->state_ms;
	fd = socket_connect(peer);
	if (fd < 0) {
		mesh_peer_errno_retry(peer, fd);
		return;
	}
	peer->watch.fd = fd;
	ret = mesh_engine_watch(&peer->process->engine, &peer->watch, EPOLLIN | EPOLLOUT);
	if (ret)
		mesh_peer_errno_retry(peer, ret);
}

MESH_HOLDS(process)
static void connect_finish(struct mesh_peer *peer)
{
	int error = mesh_tcp_error_take(peer->watch.fd);

	if (error) {
		mesh_peer_errno_retry(peer, error);
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
		mesh_peer_errno_retry(peer, error ? error : -ECONNRESET);
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

void mesh_peer_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_peer *peer = mesh_container_of(watch, struct mesh_peer, watch);

	if (peer->state == MESH_PEER_CONNECTING) {
		connect_finish(peer);
		return;
	}
	if (events & EPOLLOUT)
		out_flush(peer);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && peer->watch.fd >= 0)
		peer_read(peer);
}
