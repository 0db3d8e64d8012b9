/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_drained.c - what becomes of a peer whose link is taken out of use. */
#include <unistd.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_end.h"
#include "control/peer_life.h"
#include "control/peer_park.h"
#include "transport/comm_open.h"
#include "transport/path_state.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define GREETING_MS 3000 /* peer_life.c's */

static struct mesh_peer *peer;

static int setup(void **state)
{
	fixture_setup(state);
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	peer = &fixture.peers[0];
	peer->users = 1;
	mesh_lock_take(&fixture.setup.process.lock);
	return 0;
}

static int teardown(void **state)
{
	mesh_link_leave(peer);
	mesh_lock_release(&fixture.setup.process.lock);
	/* A lost peer has closed its socket; the fixture closes it as well. */
	if (peer->watch.fd < 0) {
		close(fixture.frames);
		fixture.frames = -1;
	}
	return fixture_teardown(state);
}

/* PARK came over the connection of an attempt that failed: the next one has its own. */
static void test_parked_by_a_failed_attempt(void **state)
{
	const struct mesh_frame_park park = {.peer_id = 5, .peer_token = 6, .wanted = 1};
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	peer->state = MESH_PEER_GREETING;
	peer->state_ms = now_ms;
	mesh_peer_park_came(peer, &park);
	mesh_peer_tick(peer, now_ms + GREETING_MS + 1);
	assert_int_equal(peer->state, MESH_PEER_RETRY);
	peer->state = MESH_PEER_GREETING;
	atomic_store(&peer->greeted, true);
	mesh_peer_tick(peer, now_ms);
	assert_int_equal(peer->state, MESH_PEER_UP);
	assert_int_equal(peer->park.state, MESH_PARK_NONE);
	assert_false(peer->park.has_sink);
}

static struct mesh_comm *comm_open(void)
{
	struct mesh_comm *comm = NULL;

	assert_int_equal(mesh_comm_open(&fixture.net, false, peer, 1, 1, &comm), 0);
	peer->park.state = MESH_PARK_DRAINED;
	return comm;
}

/* Whoever has drained a cable and pulls it knows of that. */
static void test_loss(void **state)
{
	struct mesh_comm *comm = comm_open();

	(void)state;
	mesh_peer_lose(peer, "a test says so");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	mesh_comm_free(comm);
}

/* A comm has lost its other link, and needs this one again. */
static void test_loss_of_a_link_that_is_needed(void **state)
{
	struct mesh_comm *comm = comm_open();

	(void)state;
	mesh_path_accepted(&comm->paths[0], 1, 2);
	mesh_peer_lose(peer, "a test says so");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "a test says so"));
	mesh_comm_free(comm);
}

/* The end of the peer's process has nothing to do with the cable. */
static void test_end_of_the_process(void **state)
{
	struct mesh_comm *comm = comm_open();

	(void)state;
	mesh_peer_process_ended(peer, "its process ended, a test says");
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "its process ended, a test says"));
	mesh_comm_free(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_parked_by_a_failed_attempt),
		TEST(test_loss),
		TEST(test_loss_of_a_link_that_is_needed),
		TEST(test_end_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
