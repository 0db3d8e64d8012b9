/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - the sockets of control connections: from our NIC, kept alive by the kernel. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "control/socket.h"

void mesh_control_keepalive_set(int fd, uint64_t timeout_s)
{
	int on = 1, idle = (int)(timeout_s + 1) / 2, interval = 1;
	int count = (int)timeout_s - idle > 1 ? (int)timeout_s - idle : 1;
	int user_timeout_ms = (int)timeout_s * 1000;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int mesh_control_socket_connect(const struct mesh_addr *from_addr, struct mesh_addr to_addr,
				uint16_t to_port, uint64_t timeout_s)
{
	struct sockaddr_storage from, to;
	socklen_t from_len, to_len;
	int fd, ret;

	to_addr.scope_id = from_addr->scope_id;
	from_len = mesh_addr_to_sockaddr(from_addr, 0, &from);
	to_len = mesh_addr_to_sockaddr(&to_addr, to_port, &to);
	fd = mesh_descriptor_hide(
		socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	mesh_control_keepalive_set(fd, timeout_s);
	if (!bind(fd, (struct sockaddr *)&from, from_len) &&
	    (!connect(fd, (struct sockaddr *)&to, to_len) || errno == EINPROGRESS))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

void mesh_control_socket_reset(int fd)
{
	const struct sockaddr unspecified = {.sa_family = AF_UNSPEC};

	/* Fails if the connection has ended. */
	(void)!connect(fd, &unspecified, sizeof(unspecified));
}

void mesh_control_errno_explain(int error, char *reason, size_t size)
{
	const char *hint = "";

	if (error == -ECONNREFUSED)
		hint = ": its process has ended, or a firewall refuses";
	else if (error == -ETIMEDOUT || error == -EHOSTUNREACH)
		hint = ": is the cable in, the peer's link up, and no firewall between?";
	else if (error == -ENETUNREACH || error == -EADDRNOTAVAIL)
		hint = ": did this NIC lose its address or its route?";
	else if (error == -EMFILE || error == -ENFILE)
		hint = ": " MESH_DESCRIPTORS_RAISE;
	snprintf(reason, size, "%s%s", strerror(-error), hint);
}
