/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_frames.c - the frames of an accepted control connection, and its socket. */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "control/peer.h"
#include "control/peer_life.h"

#include "comm_fixture.h"

static struct mesh_peer *peer; /* the fixture's: gives an address */

void tests_setup(void)
{
	fixture_setup();
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	peer = &fixture.peers[0];
	process_take();
}

void tests_teardown(void)
{
	process_release();
	fixture_teardown();
}

/* If the engine cannot watch it, the caller still owns the descriptor, and no state is left. */
TEST(accept_fails)
{
	int ends[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	fixture.setup.process.engine.epoll_fd = -1;
	assert_int_equal(mesh_peer_accept(&fixture.setup.process, 0, ends[0], &peer->address.addr),
			 -EBADF);
	assert_true(LIST_EMPTY(&fixture.setup.process.peers));
	assert_int_equal(send(ends[0], "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(ends[1], &byte, 1, 0), 1);
	assert_int_equal(close(ends[0]), 0);
	close(ends[1]);
}

/* The events that the engine sees at the one socket that it watches; 0: none. */
static uint32_t engine_turn(void)
{
	struct epoll_event event = {0};
	struct mesh_watch *watch;

	if (epoll_wait(fixture.setup.process.engine.epoll_fd, &event, 1, 0) != 1)
		return 0;
	watch = event.data.ptr;
	watch->ready(watch, event.events);
	return event.events;
}

/* Takes the whole frames in @bytes that are the next ones of @count; returns the bytes left. */
static size_t frames_take(uint8_t *bytes, size_t size, uint32_t *count)
{
	struct mesh_frame frame;
	int taken;

	while (size && (taken = mesh_frame_decode(bytes, size, &frame)) != 0) {
		assert_true(taken > 0);
		assert_int_equal(frame.header.type, MESH_FRAME_CLOSE);
		assert_int_equal(frame.close.sent, (*count)++);
		size -= (size_t)taken;
		memmove(bytes, bytes + taken, size);
	}
	return size;
}

/* What the socket does not take at once follows when there is room, from where it was cut. */
TEST(frames_wait_for_the_socket)
{
	const int room = 2600; /* no multiple of a frame */
	uint32_t sent = 0, read = 0;
	uint8_t bytes[4096];
	struct mesh_peer *slow;
	struct mesh_frame frame;
	size_t have = 0;
	bool cut = false;
	int ends[2];
	ssize_t n;

	fixture.setup.process.engine.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	assert_int_equal(mesh_peer_accept(&fixture.setup.process, 0, ends[0], &peer->address.addr),
			 0);
	slow = LIST_FIRST(&fixture.setup.process.peers);
	while (slow->out_size < 16384) {
		frame = (struct mesh_frame){.close = {.to_comm = 1, .sent = sent++}};
		mesh_peer_send(slow, &frame, MESH_FRAME_CLOSE);
	}
	while (read < sent) {
		n = recv(ends[1], bytes + have, sizeof(bytes) - have, 0);
		if (n < 0) {
			assert_true(engine_turn() & EPOLLOUT);
			n = recv(ends[1], bytes + have, sizeof(bytes) - have, 0);
		}
		assert_true(n > 0);
		have = frames_take(bytes, have + (size_t)n, &read);
		cut |= slow->out_size % (sizeof(frame.header) + sizeof(frame.close)) != 0;
	}
	assert_true(cut);
	assert_int_equal(have + slow->out_size, 0);
	assert_int_equal(engine_turn(), 0); /* there is room, and nothing to send */
	mesh_peer_free(slow);
	close(ends[1]);
	close(fixture.setup.process.engine.epoll_fd);
	fixture.setup.process.engine.epoll_fd = -1;
}
