/* SPDX-License-Identifier: Apache-2.0 */
/* test_paths.c - a comm whose paths do not all live: what still gets across, and over which. */
#include <string.h>

#include "transport/close.h"
#include "transport/frames.h"
#include "transport/stall.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)

static struct mesh_comm *comm;

/* The first control connection has ended; what the peer reads is the second's. */
static void first_peer_lose(void)
{
	fixture.peers[1].watch.fd = fixture.peers[0].watch.fd;
	fixture.peers[0].watch.fd = -1;
	fixture.peers[0].state = MESH_PEER_LOST;
}

/* Frames go over the control connection that is up, and name the comm as that path's peer does. */
static void test_frames_leave_over_a_living_path(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_frame_send(comm, MESH_FRAME_ASK, (struct mesh_frame_comm){.sent = 1});
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).comm.to_comm, FIXTURE_REMOTE_ID);
	first_peer_lose();
	mesh_comm_frame_send(comm, MESH_FRAME_ASK, (struct mesh_frame_comm){.sent = 2});
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).comm.to_comm, FIXTURE_REMOTE_ID + 1);
	fixture_comm_close(comm);
}

/* A comm is found by its id on the path that the frame came over, whichever that is. */
static void test_frames_come_over_each_path(void **state)
{
	struct mesh_frame frame = {.header = {.type = MESH_FRAME_ASK}};
	int i;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	fixture_post(comm, ROOM);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
	for (i = 0; i < 2; i++) {
		mesh_lock_take(&fixture.setup.process.lock);
		frame.comm.to_comm = comm_path(comm, i).sink->id + 1; /* nobody's */
		mesh_comm_frame_handle(&fixture.peers[i], &frame);
		assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1 + i);
		frame.comm.to_comm = comm_path(comm, i).sink->id;
		mesh_comm_frame_handle(&fixture.peers[i], &frame);
		mesh_lock_release(&fixture.setup.process.lock);
		assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 2 + i);
	}
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_frames_leave_over_a_living_path),
		TEST(test_frames_come_over_each_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
