/* SPDX-License-Identifier: Apache-2.0 */
/* dial.c - connects to `fi_mesh serve` of a peer, and exchanges HELLO. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/interrupt.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/self.h"
#include "peer/socket.h"
#include "peer/stream.h"
#include "peer/wire.h"

/*
 * A node on a cable answers within a millisecond; the kernel retransmits a lost SYN after 1 and 3
 * s.
 */
#define CONNECT_MS 4000
#define ANSWER_MS 5000

static int connection_wait(int fd, uint64_t deadline_ms)
{
	socklen_t len = sizeof(int);
	int error = 0, ret;

	ret = interrupt_wait(fd, POLLOUT, deadline_ms);
	if (ret)
		return ret;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? -errno : -error;
}

static void error_text(int error, char *text)
{
	const char *words = strerror(-error);

	switch (error) {
	case -ECONNREFUSED:
		words = "connection refused: nothing listens on that port";
		break;
	case -ETIMEDOUT:
		words = "no answer";
		break;
	case -EHOSTUNREACH:
		words = "no node on this cable has that address";
		break;
	case -ENETUNREACH:
		words = "no route to it";
		break;
	case -EPROTO:
		words = "something other than `fi_mesh serve` is listening on that port";
		break;
	}
	snprintf(text, MESH_CHECK_TEXT_MAX, "%s", words);
}

static void version_text(uint8_t theirs, char *text)
{
	snprintf(text, MESH_CHECK_TEXT_MAX,
		 "`fi_mesh serve` there uses version %u of this check's protocol, and this node "
		 "version %d",
		 theirs, MESH_CHECK_VERSION);
}

static int hello_exchange(const struct peer_checker *checker, struct peer_stream *stream,
			  struct mesh_check_hello *hello, char *text)
{
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	peer_self_hello(&checker->self, &frame.hello);
	ret = peer_stream_ask(stream, &frame, MESH_CHECK_HELLO, MESH_CHECK_HELLO, ANSWER_MS, NULL,
			      text);
	if (!ret)
		*hello = frame.hello;
	if (ret == -EPROTONOSUPPORT && !*text)
		version_text(peer_stream_version(stream), text);
	return ret;
}

/* Returns a negative errno; a descriptor that is to be closed otherwise. */
static int socket_open(const struct peer_checker *checker, const struct mesh_addr *local,
		       const struct mesh_addr *remote)
{
	int fd = peer_socket_connect(local, remote, checker->options->port), ret;

	ret = fd < 0 ? fd : connection_wait(fd, mesh_clock_ms() + CONNECT_MS);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

/*
 * The server has closed the connection instead of answering our HELLO, as that of version 1 does.
 * Such a one answers a HELLO of its own version. Returns its version; 0: it is something else.
 */
static uint8_t version_ask(const struct peer_checker *checker, const struct mesh_addr *local,
			   const struct mesh_addr *remote)
{
	struct mesh_check_frame frame;
	struct peer_stream stream;
	uint8_t version = 0;
	int fd = socket_open(checker, local, remote);

	if (fd < 0 || peer_stream_open(&stream, fd))
		return 0;
	memset(&frame, 0, sizeof(frame));
	mesh_check_header_fill(&frame.header, MESH_CHECK_HELLO, 1, MESH_CHECK_HELLO_1_BYTES);
	frame.header.version = 1;
	memcpy(frame.hello.node, checker->self.name, sizeof(frame.hello.node));
	if (send(fd, &frame, sizeof(frame.header) + MESH_CHECK_HELLO_1_BYTES, MSG_NOSIGNAL) > 0 &&
	    !interrupt_wait(fd, POLLIN, mesh_clock_ms() + ANSWER_MS) &&
	    peer_stream_next(&stream, &frame) == -EPROTONOSUPPORT)
		version = peer_stream_version(&stream);
	peer_stream_close(&stream);
	return version;
}

int peer_dial(const struct peer_checker *checker, const struct mesh_addr *local,
	      const struct mesh_addr *remote, struct peer_stream *stream,
	      struct mesh_check_hello *hello, char *text)
{
	uint8_t theirs;
	int fd, ret;

	*text = '\0';
	fd = socket_open(checker, local, remote);
	ret = fd < 0 ? fd : peer_stream_open(stream, fd);
	if (!ret) {
		ret = hello_exchange(checker, stream, hello, text);
		if (ret)
			peer_stream_close(stream);
	}
	theirs = ret == -ECONNRESET && fd >= 0 ? version_ask(checker, local, remote) : 0;
	if (theirs) {
		version_text(theirs, text);
		return -EPROTONOSUPPORT;
	}
	if (ret && !*text)
		error_text(ret, text);
	return ret;
}
