/* SPDX-License-Identifier: Apache-2.0 */
/* lane_tcp.c - sockets that never block; messages back to back, whose sizes both ends know. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lane_tcp.h"

void lane_tcp_listen(struct lane *lane, const char *address, uint8_t *handle)
{
	struct sockaddr_in where = {.sin_family = AF_INET};
	socklen_t size = sizeof(where);

	if (inet_pton(AF_INET, address, &where.sin_addr) != 1)
		fatal("'%s' is no IPv4 address", address);
	lane->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lane->listen_fd < 0 ||
	    bind(lane->listen_fd, (struct sockaddr *)&where, sizeof(where)) ||
	    listen(lane->listen_fd, 1) ||
	    getsockname(lane->listen_fd, (struct sockaddr *)&where, &size))
		fatal("cannot listen at %s: %s", address, strerror(errno));
	memcpy(handle, &where, sizeof(where));
}

static void make_ready(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void lanes_tcp_connect(struct lane *sends, struct lane *receives, unsigned int num_sends,
		       unsigned int num_receives, const uint8_t *handles)
{
	struct sockaddr_in where;

	for (unsigned int i = 0; i < num_sends; i++) {
		memcpy(&where, handles + (size_t)i * LANE_HANDLE_BYTES, sizeof(where));
		sends[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sends[i].fd < 0 ||
		    connect(sends[i].fd, (struct sockaddr *)&where, sizeof(where)))
			fatal("cannot connect: %s", strerror(errno));
		make_ready(sends[i].fd);
	}
	for (unsigned int i = 0; i < num_receives; i++) {
		receives[i].fd = accept4(receives[i].listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (receives[i].fd < 0)
			fatal("cannot accept: %s", strerror(errno));
		make_ready(receives[i].fd);
		close(receives[i].listen_fd);
		receives[i].listen_fd = -1;
	}
}

/* One call of the kernel for what is next. Returns false if the socket takes or has no more. */
static bool move_some(struct lane *lane, struct lane_message *message)
{
	ssize_t n;

	if (!message->left)
		return true;
	if (lane->sending)
		n = send(lane->fd, message->at, message->left, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = recv(lane->fd, message->at, message->left, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		fatal("TCP: %s", n ? strerror(errno) : "the peer has closed");
	message->at += n;
	message->left -= (size_t)n;
	return !message->left;
}

bool lane_tcp_move(struct lane *lane)
{
	while (lane->moved < lane->posted &&
	       move_some(lane, &lane->messages[lane->moved % lane->slots])) {
		lane->moved++;
		/* A receiver looks at what it has before it takes more: it is in the cache. */
		if (!lane->sending)
			break;
	}
	return lane->moved > lane->done;
}

void lane_tcp_start(struct lane *lane, uint8_t *data, size_t size)
{
	struct lane_message *message = &lane->messages[lane->posted % lane->slots];

	message->at = data;
	message->left = size;
	if (lane->sending && lane->moved == lane->posted && move_some(lane, message))
		lane->moved++;
}

void lane_tcp_share(const struct lane *lane, struct lane *other)
{
	if (dup2(lane->fd, other->fd) < 0)
		fatal("dup2: %s", strerror(errno));
}

void lane_tcp_close(struct lane *lane)
{
	close(lane->fd);
}
