/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - TCP sockets that connect and listen without blocking. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/socket.h"

#define LISTEN_BACKLOG 16

/* @local: NULL: the kernel chooses the address. */
static int socket_bound(enum mesh_family family, const struct mesh_addr *local, uint16_t port)
{
	struct sockaddr_storage from;
	socklen_t len;
	int fd, on = 1, ret;

	fd = socket(family == MESH_FAMILY_IPV6 ? AF_INET6 : AF_INET,
		    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!local)
		return fd;
	len = mesh_addr_to_sockaddr(local, port, &from);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&from, len))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int peer_socket_connect(const struct mesh_addr *local, const struct mesh_addr *remote,
			uint16_t port)
{
	struct mesh_addr target = *remote;
	struct sockaddr_storage to;
	socklen_t len;
	int fd, ret;

	if (local && mesh_addr_is_link_local(remote))
		target.scope_id = local->scope_id;
	len = mesh_addr_to_sockaddr(&target, port, &to);
	fd = socket_bound(remote->family, local, 0);
	if (fd < 0)
		return fd;
	if (!connect(fd, (struct sockaddr *)&to, len) || errno == EINPROGRESS)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int peer_socket_listen(const struct mesh_addr *local, uint16_t port)
{
	int fd = socket_bound(local->family, local, port), ret;

	if (fd < 0 || !listen(fd, LISTEN_BACKLOG))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}
