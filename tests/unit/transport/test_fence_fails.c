/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fence_fails.c - the provider's connections with a lost peer cannot be cut: the comms into
 * whose memory something late may be written fail, with one WARN, and no other comm does.
 */
#include "control/peer_life.h"
#include "transport/comm_life.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)

ssize_t __real_getdents64(int fd, void *list, size_t size);

static bool lists_fail;

/* What lists the process's sockets. */
ssize_t __wrap_getdents64(int fd, void *list, size_t size)
{
	if (!lists_fail)
		return __real_getdents64(fd, list, size);
	errno = EMFILE;
	return -1;
}

static void setup(void)
{
	lists_fail = false;
	fixture_setup();
}

static struct mesh_comm *receiver_open(void)
{
	struct mesh_comm *comm;

	if (!fixture.num_paths)
		fixture_paths_open(MESH_PROVIDER_TCP, 2);
	comm = fixture_comm_open(false);
	fixture_post(comm, ROOM);
	return comm;
}

/* The sender has given up the second path. */
static void question_comes(struct mesh_comm *comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.header.type = MESH_FRAME_RESUME;
	frame.resume.to_comm = comm_path(comm, 0).sink->id;
	frame.resume.round = 1;
	frame.resume.dead = 1 << 1;
	frame.resume.epochs[1] = comm->paths[1].epoch;
	process_take();
	mesh_comm_frame_handle(&fixture.peers[0], &frame);
	process_release();
}

static void second_lose(void)
{
	process_take();
	mesh_peer_lose(&fixture.peers[1], "its cable is gone");
	mesh_peer_bury(&fixture.peers[1]);
	process_release();
}

static void assert_fails(struct mesh_comm *comm)
{
	assert_int_not_equal(*comm_inside(comm).error, 0);
	assert_true(log_captured(MESH_LOG_WARN, "cannot cut the connection with 10.7.0.2: Too many "
						"open files"));
}

/* All comms over that link do, and one line says so. */
TEST(link_lost)
{
	struct mesh_comm *comms[3];

	for (int i = 0; i < 3; i++)
		comms[i] = receiver_open();
	lists_fail = true;
	second_lose();
	for (int i = 0; i < 3; i++)
		assert_fails(comms[i]);
	for (int i = 0; i < 3; i++)
		question_comes(comms[i]);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 2); /* "lost node b" is the other */
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(comms[i]->paths[1].state, MESH_PATH_DOWN);
}

/* The first fence succeeded, and then a RESUME asks for another. */
TEST(question)
{
	struct mesh_comm *comm = receiver_open();

	second_lose();
	assert_int_equal(*comm_inside(comm).error, 0);
	lists_fail = true;
	question_comes(comm);
	assert_fails(comm);
	assert_int_not_equal(comm->paths[1].state, MESH_PATH_DOWN);
}

/* The link is about to be used again: not before it is fenced. */
TEST(link_settles)
{
	struct mesh_comm *comm = receiver_open();
	struct mesh_peer *back = &fixture.peers[0];

	second_lose();
	lists_fail = true;
	process_take();
	fixture_peer_enter(&fixture.peers[0], 77, 4321);
	fixture_peer_enter(&fixture.peers[1], 77, 4321);
	back->domain = fixture.domains[1];
	assert_false(mesh_link_settle(back));
	lists_fail = false;
	back->domain = fixture.domains[0];
	process_release();
	assert_fails(comm);
}

/* A comm that is reached through a relay fails with the link to the relay. */
TEST(relayed)
{
	struct mesh_comm *comm = receiver_open();

	comm->paths[1].has_relay = true;
	lists_fail = true;
	second_lose();
	assert_fails(comm);
}

static void end(void)
{
	process_take();
	mesh_rejoins_close(&fixture.setup.process);
	process_release();
	fixture_teardown();
}

TESTS_USE(setup, end);
