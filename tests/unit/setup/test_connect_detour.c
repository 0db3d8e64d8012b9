/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_connect_detour.c - routed candidates while a relay, which has taken their place because the
 * routes were dead, does not answer OPEN.
 */
#include "setup/connect_relay.h"

#include "dial_fixture.h"

/* Of the other node; this one has a single NIC, so each is tried by itself. */
#define NICS 2

static struct mesh_peer peers[NICS];
static struct mesh_relay_try relay;
/* The relay that does not answer. */
static struct mesh_peer silent;

static int setup(void **state)
{
	int i;

	(void)state;
	dial_begin(1, NICS);
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	attempt.open_ms = START;
	memset(&silent, 0, sizeof(silent));
	silent.process = relay.process = process;
	silent.watch.fd = -1;
	silent.state = MESH_PEER_UP;
	silent.users = 1;
	relay.peers[0] = &silent;
	relay.num_peers = 1;
	for (i = 0; i < NICS; i++) {
		dial_peer_add(&peers[i], &domains[0], i);
		peers[i].state = MESH_PEER_CONNECTING;
		candidate_add(0, i)->class = MESH_PATH_ROUTED;
	}
	return 0;
}

static int teardown(void **state)
{
	attempt.relay = NULL;
	return dial_end(state);
}

static bool ready(uint64_t after_ms)
{
	bool is_ready = mesh_connect_detour_beside(&attempt, START + after_ms);

	assert_ptr_equal(attempt.relay, &relay);
	assert_int_equal(relay.num_peers, 1); /* OPEN still waits for its answer */
	return is_ready;
}

/* They are tried beside OPEN, one after the other, and take the relay's place when one is up. */
static void test_tried_again(void **state)
{
	(void)state;
	assert_false(ready(2999));
	assert_int_equal(attempt.num_peers, 0);
	assert_false(ready(3000));
	assert_dials_only(&peers[0]);
	assert_false(ready(6001));
	assert_dials_only(&peers[1]);
	assert_int_equal(peers[0].users, 0);
	peers[1].state = MESH_PEER_UP;
	assert_true(ready(6100));
	mesh_connect_detour_leave(&attempt);
	assert_null(attempt.relay);
	assert_ptr_equal(attempt.detour, &relay);
	assert_false(attempt.detoured);
	assert_int_equal(relay.num_peers, 0);
	assert_int_equal(silent.users, 0);
	assert_dials_only(&peers[1]);
}

/* Other relays lead where no route does: their candidates are none. */
static void test_not_without_routes(void **state)
{
	(void)state;
	attempt.detoured = false;
	assert_false(ready(60000));
	assert_int_equal(attempt.num_peers, 0);
}

/* A NIC cannot be opened: the relay may still answer. */
static void test_none_can_begin(void **state)
{
	(void)state;
	nic_opened(0, false);
	assert_false(ready(3000));
	assert_int_equal(attempt.num_peers, 0);
	nic_opened(0, true);
	assert_false(ready(3001));
	assert_dials_only(&peers[0]);
}

/* No neighbour leads there after 5 s; but the mesh may still be searched, or searched again. */
static void test_hopeless(void **state)
{
	(void)state;
	relay.tried.num = 0;
	relay.found_ms = 0;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, START + 5000));
	relay.found_ms = START + 4600;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, START + 4999));
	assert_true(mesh_connect_relay_is_hopeless(&attempt, START + 5000));
	relay.tried.num = 1;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, START + 5000));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tried_again),
		TEST(test_not_without_routes),
		TEST(test_none_can_begin),
		TEST(test_hopeless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
