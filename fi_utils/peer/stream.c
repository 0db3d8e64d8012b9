/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - sockets without blocking, and frames in and out of one. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/domain.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"

#include "common/interrupt.h"
#include "peer/stream.h"
#include "peer/wire.h"

int peer_stream_open(struct peer_stream *stream, int fd)
{
	*stream = (struct peer_stream){.fd = fd};
	stream->in = malloc(PEER_STREAM_IN_MAX);
	stream->out = malloc(PEER_STREAM_OUT_MAX);
	if (stream->in && stream->out)
		return 0;
	peer_stream_close(stream);
	return -ENOMEM;
}

void peer_stream_close(struct peer_stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->in);
	free(stream->out);
	*stream = (struct peer_stream){.fd = -1};
}

/* ---- out ---------------------------------------------------------------------------------- */

int peer_stream_flush(struct peer_stream *stream)
{
	ssize_t n = 0;
	size_t sent = 0;

	while (sent < stream->out_size) {
		n = send(stream->fd, stream->out + sent, stream->out_size - sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	if (n < 0 && errno != EAGAIN)
		return -errno;
	stream->out_size -= sent;
	memmove(stream->out, stream->out + sent, stream->out_size);
	return 0;
}

static int bytes_queue(struct peer_stream *stream, const void *head, size_t head_size,
		       const void *bytes, size_t size)
{
	if (PEER_STREAM_OUT_MAX - stream->out_size < head_size + size)
		return -ENOBUFS;
	memcpy(stream->out + stream->out_size, head, head_size);
	stream->out_size += head_size;
	if (size)
		memcpy(stream->out + stream->out_size, bytes, size);
	stream->out_size += size;
	return peer_stream_flush(stream);
}

int peer_stream_send(struct peer_stream *stream, struct mesh_check_frame *frame,
		     enum mesh_check_type type, uint32_t number)
{
	size_t size = mesh_check_finish(frame, type, number);

	return bytes_queue(stream, frame, sizeof(frame->header), &frame->hello,
			   size - sizeof(frame->header));
}

int peer_stream_send_error(struct peer_stream *stream, uint32_t number, int error, const char *text)
{
	struct mesh_check_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.error.error = (uint32_t)-error;
	snprintf(frame.error.text, sizeof(frame.error.text), "%s", *text ? text : strerror(-error));
	return peer_stream_send(stream, &frame, MESH_CHECK_ERROR, number);
}

uint8_t peer_stream_version(const struct peer_stream *stream)
{
	return mesh_check_version_of(stream->in, stream->in_size);
}

void peer_stream_refuse_version(struct peer_stream *stream)
{
	struct mesh_check_header asked;
	struct mesh_check_frame frame;
	size_t size;

	memcpy(&asked, stream->in, sizeof(asked)); /* the same in all versions */
	memset(&frame, 0, sizeof(frame));
	frame.error.error = EPROTONOSUPPORT;
	snprintf(frame.error.text, sizeof(frame.error.text),
		 "`fi_mesh serve` uses version %d of this check's protocol, and `fi_mesh check` "
		 "version %u",
		 MESH_CHECK_VERSION, asked.version);
	size = mesh_check_finish(&frame, MESH_CHECK_ERROR, asked.number);
	frame.header.version = asked.version;
	/* Whatever becomes of it, the connection is closed next. */
	bytes_queue(stream, &frame.header, sizeof(frame.header), &frame.error,
		    size - sizeof(frame.header));
}

/* ---- in ----------------------------------------------------------------------------------- */

static int stream_read(struct peer_stream *stream)
{
	size_t room = PEER_STREAM_IN_MAX - stream->in_size;
	ssize_t n;

	do {
		n = recv(stream->fd, stream->in + stream->in_size, room, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (!n)
		return -ECONNRESET;
	stream->in_size += (size_t)n;
	return 0;
}

int peer_stream_next(struct peer_stream *stream, struct mesh_check_frame *frame)
{
	int ret;

	stream->in_size -= stream->in_taken;
	memmove(stream->in, stream->in + stream->in_taken, stream->in_size);
	stream->in_taken = 0;
	for (;;) {
		ret = mesh_check_decode(stream->in, stream->in_size, frame);
		if (ret > 0) {
			stream->in_taken = (size_t)ret;
			return 0;
		}
		if (!ret)
			ret = stream_read(stream);
		if (ret)
			return ret == -EWOULDBLOCK ? -EAGAIN : ret;
	}
}

/* Waits for the socket, or polls something else instead. Returns as interrupt_wait(). */
static int stream_wait(struct peer_stream *stream, uint64_t deadline_ms, peer_stream_poll poll,
		       void *arg)
{
	int ret;

	if (!poll)
		return interrupt_wait(stream->fd, stream->out_size ? POLLIN | POLLOUT : POLLIN,
				      deadline_ms);
	ret = poll(arg);
	if (ret && ret != -EAGAIN)
		return ret;
	if (interrupt_happened())
		return -EINTR;
	return mesh_clock_ms() >= deadline_ms ? -ETIMEDOUT : 0;
}

/* A datagram was reported after the wait for it had ended. */
static bool frame_is_late(const struct mesh_check_frame *frame, enum mesh_check_type type,
			  uint32_t number)
{
	return frame->header.type == MESH_CHECK_UDP_GOT &&
	       (type != MESH_CHECK_UDP_GOT || frame->header.number != number);
}

static int frame_judge(const struct mesh_check_frame *frame, enum mesh_check_type type,
		       uint32_t number, char *text)
{
	if (frame->header.type == MESH_CHECK_ERROR) {
		snprintf(text, MESH_CHECK_TEXT_MAX, "%s", frame->error.text);
		/*
		 * Only what an errno can be: a foreign value must not become a success or our
		 * Ctrl-C.
		 */
		return frame->error.error && frame->error.error < 4096 &&
				       frame->error.error != EINTR
			       ? -(int)frame->error.error
			       : -EPROTO;
	}
	return frame->header.type == type && frame->header.number == number ? 0 : -EPROTO;
}

int peer_stream_await_polling(struct peer_stream *stream, enum mesh_check_type type,
			      uint32_t number, uint64_t deadline_ms, peer_stream_poll poll,
			      void *arg, struct mesh_check_frame *frame, char *text)
{
	int ret;

	*text = '\0';
	for (;;) {
		ret = peer_stream_flush(stream);
		if (!ret)
			ret = peer_stream_next(stream, frame);
		if (!ret && frame_is_late(frame, type, number))
			continue;
		if (!ret)
			return frame_judge(frame, type, number, text);
		if (ret == -EAGAIN)
			ret = stream_wait(stream, deadline_ms, poll, arg);
		if (ret)
			return ret;
	}
}

int peer_stream_await(struct peer_stream *stream, enum mesh_check_type type, uint32_t number,
		      uint64_t deadline_ms, struct mesh_check_frame *frame, char *text)
{
	return peer_stream_await_polling(stream, type, number, deadline_ms, NULL, NULL, frame,
					 text);
}

int peer_stream_ask(struct peer_stream *stream, struct mesh_check_frame *frame,
		    enum mesh_check_type question, enum mesh_check_type answer, uint32_t ms,
		    char *text)
{
	int ret = peer_stream_send(stream, frame, question, ++stream->number);

	*text = '\0';
	if (ret)
		return ret;
	return peer_stream_await(stream, answer, stream->number, mesh_clock_ms() + ms, frame, text);
}

/* ---- sockets ---------------------------------------------------------------------------- */

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
