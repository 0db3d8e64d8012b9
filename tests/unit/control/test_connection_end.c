/* SPDX-License-Identifier: Apache-2.0 */
/* test_connection_end.c - what the end of a control connection says about its process. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "transport/comm_life.h"

#include "comm_fixture.h"
#include "tcp_pair.h"

static struct mesh_peer *peer = &fixture.peers[0];

/* Two peers, one at each NIC, with the process locked. */
void tests_setup(void)
{
	fixture_setup();
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	for (int i = 0; i < 2; i++)
		LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[i], entry);
	process_take();
}

void tests_teardown(void)
{
	/* Those that were greeted have joined a link; the fixture frees no peer. */
	for (int i = 0; i < 2; i++)
		mesh_link_leave(&fixture.peers[i]);
	process_release();
	fixture_teardown();
}

enum end {
	END_IN_ORDER,
	END_RESET,     /* by its kernel, because it left bytes unread */
	END_RESET_MET, /* by a firewall; a send of ours meets it before it is read */
};

/* Ends the first connection. */
static void connection_end(enum end how)
{
	const struct linger none = {.l_onoff = 1};
	struct mesh_frame frame = {0};
	int pair[2];

	if (how == END_RESET)
		assert_int_equal(write(peer->watch.fd, "x", 1), 1);
	close(fixture.frames);
	fixture.frames = -1;
	if (how != END_RESET_MET)
		return;
	tcp_pair_open(pair);
	assert_int_equal(dup2(pair[0], peer->watch.fd), peer->watch.fd);
	close(pair[0]);
	setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(pair[1]);
	mesh_peer_send(peer, &frame, MESH_FRAME_ASK);
}

/*
 * A connection ends: this node reads that, and over another one of the same process lies what that
 * sent before.
 */
static void end_is_read(enum end how)
{
	bool reset = how != END_IN_ORDER;
	struct mesh_frame frame = {0};
	struct mesh_comm *comm;
	int ends[2], i;

	peer->watch.ready = mesh_peer_ready;
	for (i = 0; i < 2; i++)
		mesh_peer_process_set(&fixture.peers[i], 7);
	process_release();
	comm = fixture_comm_open(true);
	process_take();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fixture.peers[1].watch.fd = ends[0];
	frame.to_comm = comm->paths[1].sink.id;
	frame.close.closed = 1;
	frame.close.writes = 5;
	assert_int_equal(write(ends[1], &frame, mesh_frame_finish(&frame, MESH_FRAME_CLOSE)),
			 sizeof(frame.header) + sizeof(frame.close));
	close(ends[1]);
	connection_end(how);
	peer->watch.ready(&peer->watch, EPOLLIN | EPOLLHUP);
	assert_int_equal(*comm_inside(comm).peer_end, MESH_END_CLOSED);
	assert_int_equal(peer->state, MESH_PEER_LOST);
	/* Of a reset alone nobody knows that the process has ended. */
	assert_int_equal(fixture.peers[1].state, reset ? MESH_PEER_UP : MESH_PEER_LOST);
	process_release();
	fixture_comm_close(comm);
	process_take();
	mesh_rejoins_close(&fixture.setup.process);
	for (i = 0; i < 2; i++)
		mesh_peer_process_set(&fixture.peers[i], 0);
	if (reset)
		close(ends[0]);
}

TEST(last_words_are_read)
{
	end_is_read(END_IN_ORDER);
	tests_teardown();
	tests_setup();
	end_is_read(END_RESET);
}

TEST(reset_is_no_end)
{
	end_is_read(END_RESET_MET);
}

/* The other end of one that greets may be up, whoever has connected. */
TEST(attempt_that_greets_is_reset)
{
	struct mesh_peer attempt = {.process = &fixture.setup.process, .state = MESH_PEER_GREETING};
	char byte;
	int pair[2];

	attempt.incoming = true;
	tcp_pair_open(pair);
	attempt.watch.fd = pair[0];
	mesh_peer_attempt_end(&attempt);
	assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	close(pair[0]);
	close(pair[1]);
}
