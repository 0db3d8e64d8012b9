/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - the control listeners: one TCP port, open on the mesh NICs' addresses only. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/private_descriptor.h"
#include "transport/counters.h"
#include "transport/listener.h"
#include "transport/node.h"
#include "transport/peer.h"

/* Every NIC listens on the same port, which the kernel chose for the first: another may hold it. */
#define PORT_TRIES 32
#define BACKLOG 1024
/* After accept() ran out of file descriptors. */
#define PAUSE_MS 200
/* Connections that have not introduced themselves yet; more are closed at once. */
#define STRANGERS_MAX 256

static int strangers_count(const struct mesh_node *node)
{
	const struct mesh_peer *peer;
	int count = 0;

	LIST_FOREACH(peer, &node->peers, entry)
		count += peer->incoming && peer->state == MESH_PEER_HELLO;
	return count;
}

static void accept_pause(struct mesh_control *control, int error)
{
	struct mesh_log_limit *limit = &control->node->limits.accept_fails;
	uint64_t now_ms = mesh_clock_ms();
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(limit, 1, now_ms, more))
		mesh_warn("cannot accept a peer's connection: %s%s%s", strerror(error),
			  error == EMFILE || error == ENFILE ? "; " MESH_DESCRIPTORS_RAISE : "",
			  more);
	control->paused_until_ms = now_ms + PAUSE_MS;
	mesh_engine_rewatch(&control->node->engine, &control->watch, 0);
}

static void control_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_control *control = (struct mesh_control *)watch;
	struct mesh_node *node = control->node;
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct mesh_addr address;
	int fd;

	(void)events;
	fd = mesh_descriptor_hide(
		accept4(watch->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			accept_pause(control, errno);
		return;
	}
	if (strangers_count(node) >= STRANGERS_MAX ||
	    mesh_addr_from_sockaddr((struct sockaddr *)&from, len, &address, NULL) ||
	    mesh_peer_accept(node, node->domains[control->dev], fd, &address)) {
		mesh_count_event(&node->counters->refused);
		mesh_descriptor_close(fd);
	}
}

/* A listening socket on @address. Returns it, or a negative errno. */
static int socket_listen(const struct mesh_addr *address, uint16_t port)
{
	struct sockaddr_storage sockaddr;
	socklen_t len = mesh_addr_to_sockaddr(address, port, &sockaddr);
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(sockaddr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
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

static void sockets_close(struct mesh_node *node)
{
	int dev;

	for (dev = 0; dev < node->num_devs; dev++) {
		mesh_descriptor_close(node->controls[dev].watch.fd);
		node->controls[dev].watch.fd = -1;
	}
}

/* One attempt to have one port on every NIC. */
static int sockets_open(struct mesh_node *node)
{
	int dev, fd, ret;

	node->control_port = 0;
	for (dev = 0; dev < node->num_devs; dev++) {
		fd = socket_listen(&node->nics[dev]->source, node->control_port);
		if (fd < 0)
			return fd;
		node->controls[dev].watch.fd = fd;
		if (node->control_port)
			continue;
		ret = socket_port(fd, &node->control_port);
		if (ret)
			return ret;
	}
	return 0;
}

void mesh_control_start(struct mesh_node *node, int dev)
{
	struct mesh_control *control = &node->controls[dev];
	int ret = 0;

	mesh_lock_assert_held(&node->lock);
	if (control->watch.fd < 0)
		return;
	if (node->domains[dev])
		ret = mesh_engine_watch(&node->engine, &control->watch, EPOLLIN);
	if (ret)
		mesh_warn("%s: cannot accept peers: %s", node->nics[dev]->netdev, strerror(-ret));
	/* Without a domain, who dials is refused at once. */
	if (ret || node->dev_states[dev] == MESH_DEV_FAILED)
		mesh_engine_unwatch(&node->engine, &control->watch);
}

int mesh_controls_open(struct mesh_node *node)
{
	int dev, tries, ret = 0;

	for (dev = 0; dev < node->num_devs; dev++) {
		node->controls[dev] = (struct mesh_control){
			.watch = {.fd = -1, .ready = control_ready},
			.node = node,
			.dev = dev,
		};
	}
	for (tries = 0; tries < PORT_TRIES; tries++) {
		ret = sockets_open(node);
		if (!ret)
			break;
		sockets_close(node);
		if (ret != -EADDRINUSE)
			break;
	}
	for (dev = 0; dev < node->num_devs && !ret; dev++)
		mesh_control_start(node, dev);
	if (ret) {
		mesh_warn("cannot listen for peers: %s", strerror(-ret));
		sockets_close(node);
	}
	return ret;
}

void mesh_controls_close(struct mesh_node *node)
{
	int dev;

	for (dev = 0; dev < node->num_devs; dev++)
		mesh_engine_unwatch(&node->engine, &node->controls[dev].watch);
}

bool mesh_controls_paused(const struct mesh_node *node)
{
	int dev;

	for (dev = 0; dev < node->num_devs; dev++) {
		if (node->controls[dev].paused_until_ms)
			return true;
	}
	return false;
}

void mesh_controls_tick(struct mesh_node *node, uint64_t now_ms)
{
	int dev;

	for (dev = 0; dev < node->num_devs; dev++) {
		struct mesh_control *control = &node->controls[dev];

		if (!control->paused_until_ms || now_ms < control->paused_until_ms)
			continue;
		control->paused_until_ms = 0;
		mesh_engine_rewatch(&node->engine, &control->watch, EPOLLIN);
	}
}
