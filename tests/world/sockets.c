/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.c - the calls of sockets. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "kernel.h"

int world_bind(int fd, const struct sockaddr *name, socklen_t len) WORLD_AS(bind);
int world_connect(int fd, const struct sockaddr *name, socklen_t len) WORLD_AS(connect);
int world_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags) WORLD_AS(accept4);
int world_accept(int fd, struct sockaddr *name, socklen_t *len) WORLD_AS(accept);
int world_getsockname(int fd, struct sockaddr *name, socklen_t *len) WORLD_AS(getsockname);
int world_getpeername(int fd, struct sockaddr *name, socklen_t *len) WORLD_AS(getpeername);

int socket(int domain, int type, int protocol)
{
	struct world_node *node = world_acting();
	struct world_file *file;

	if (!node)
		world_die("a socket of nobody");
	world_enter();
	if (domain == AF_INET)
		file = (type & 15) == SOCK_STREAM ? world_tcp_new(node) : world_datagram_new(node);
	else if (domain == AF_NETLINK)
		file = world_news_new(node);
	else if (domain == AF_UNIX)
		file = world_quiet_new(node);
	else
		return world_result(-EAFNOSUPPORT);
	file->nonblocking = type & SOCK_NONBLOCK;
	return world_result(world_file_open(file));
}

#define CALL(fd, function, ...)                                                                    \
	({                                                                                         \
		struct world_file *called_;                                                        \
                                                                                                   \
		world_enter();                                                                     \
		called_ = world_file_of(fd);                                                       \
		!called_ ? world_result(-EBADF)                                                    \
		: !called_->kind->function                                                         \
			? world_result(-ENOTSOCK)                                                  \
			: world_result(called_->kind->function(called_, ##__VA_ARGS__));           \
	})

int world_bind(int fd, const struct sockaddr *name, socklen_t len)
{
	return CALL(fd, bind, name, len);
}

int listen(int fd, int backlog)
{
	return CALL(fd, listen, backlog);
}

int world_connect(int fd, const struct sockaddr *name, socklen_t len)
{
	return CALL(fd, connect, name, len);
}

int shutdown(int fd, int how)
{
	return CALL(fd, shutdown);
}

int world_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	struct world_file *file, *accepted;
	int ret;

	world_enter();
	file = world_file_of(fd);
	if (!file)
		return world_result(-EBADF);
	if (!file->kind->accept)
		return world_result(-EOPNOTSUPP);
	if (file->node->num_files >= file->node->limit_files)
		return world_result(-EMFILE);
	ret = world_file_await(file, EPOLLIN, 0);
	if (!ret)
		ret = file->kind->accept(file, &accepted);
	if (ret)
		return world_result(ret);
	accepted->nonblocking = flags & SOCK_NONBLOCK;
	accepted->limit_ns = file->limit_ns;
	if (name && !accepted->kind->name_of(accepted, true, (struct sockaddr_in *)name))
		*len = sizeof(struct sockaddr_in);
	return world_result(world_file_open(accepted));
}

int world_accept(int fd, struct sockaddr *name, socklen_t *len)
{
	int accepted = world_accept4(fd, name, len, 0);

	if (accepted >= 0)
		world_file_of(accepted)->by_provider = true;
	return accepted;
}

static int name_get(int fd, bool peer, struct sockaddr *name, socklen_t *len)
{
	struct world_file *file = world_file_of(fd);
	struct sockaddr_in in = {.sin_family = AF_INET};
	int ret;

	if (!file)
		return world_result(-EBADF);
	if (!file->kind->name_of)
		return world_result(-ENOTSOCK);
	ret = file->kind->name_of(file, peer, &in);
	if (ret)
		return world_result(ret);
	memcpy(name, &in, *len < sizeof(in) ? *len : sizeof(in));
	*len = sizeof(in);
	return 0;
}

int world_getsockname(int fd, struct sockaddr *name, socklen_t *len)
{
	return name_get(fd, false, name, len);
}

int world_getpeername(int fd, struct sockaddr *name, socklen_t *len)
{
	return name_get(fd, true, name, len);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	struct world_file *file = world_file_of(fd);

	if (file && level == SOL_SOCKET && option == SO_COOKIE) {
		memcpy(value, &file->cookie, sizeof(file->cookie));
		return 0;
	}
	return CALL(fd, get, level, option, value, len);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct world_file *file = world_file_of(fd);
	struct timeval limit;

	if (file && level == SOL_SOCKET && option == SO_RCVTIMEO) {
		memcpy(&limit, value, sizeof(limit));
		file->limit_ns =
			(uint64_t)limit.tv_sec * WORLD_S + (uint64_t)limit.tv_usec * WORLD_US;
		return 0;
	}
	return CALL(fd, set, level, option, value);
}
