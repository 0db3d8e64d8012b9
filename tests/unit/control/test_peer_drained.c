/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_drained.c - what becomes of a peer whose link is taken out of use. */
#include <unistd.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "control/peer_park.h"

#include "comm_fixture.h"

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_parked_by_a_failed_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
