/* SPDX-License-Identifier: Apache-2.0 */
/* controls.c - the control listeners: one TCP port, open on the mesh NICs' addresses only. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/config.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/retry.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/process.h"
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
