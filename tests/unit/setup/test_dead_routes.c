/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dead_routes.c - routes that let nothing through are waited for once for each node, until
 * they let something through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/dead_routes.h"
#include "setup/setup.h"

#include "connect_fixture.h"

static int setup(void **state)
{
	(void)state;
	attempt_make();
	return 0;
}

/* True if relays are looked for this long after the attempt began. */
static bool detours(uint64_t age_ms)
{
	bool looks;

	attempt.overdue = false;		   /* as another attempt */
	setup_state.searched_ms = mesh_clock_ms(); /* the mesh was searched a moment ago */
	mesh_connect_detour(&attempt, START + age_ms);
	looks = attempt.detour != NULL;
	mesh_relay_try_close(attempt.detour);
	attempt.detour = NULL;
	return looks;
}

/* Relays are looked for after this time, and not sooner. */
static void waits(uint64_t ms)
{
	assert_false(detours(ms - 1));
	assert_true(detours(ms));
}

static void test_waited_for_once(void **state)
{
	(void)state;
	waits(4000);
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	waits(300);
	attempt.handle.node_id = NODE + 2;
	waits(4000);
}

/* The other process has accepted a connection, and may only be busy. */
static void test_answered(void **state)
{
	(void)state;
	strcpy(peers[1].name, "c");
	waits(10000);
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	waits(2000);
	peers[1].name[0] = '\0';
	peers[1].state = MESH_PEER_HELLO;
	waits(2000);
	peers[1].state = MESH_PEER_UP;
	assert_false(detours(20000));
}

/* Where tcp may follow RDMA, both have their time. */
static void test_fallback(void **state)
{
	(void)state;
	attempt.choice.candidates[1].class = MESH_PATH_FALLBACK_ROUTED;
	waits(8000);
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	waits(600);
}

/* A NIC that is slow to open may never be open: a direct candidate over it holds nothing up. */
static void test_slow_cable(void **state)
{
	(void)state;
	process->endpoints[1].nic = 1;
	process->providers[1] = MESH_PROVIDER_TCP;
	process->dev_states[1] = MESH_DEV_OPENING;
	process->opening_ms[1] = START;
	attempt.choice.candidates[0].local = 1;
	attempt.choice.candidates[0].class = MESH_PATH_DIRECT;
	assert_false(detours(20000));
	process->opening_ms[1] = 0; /* for longer than connections wait */
	waits(4000);
	attempt.choice.candidates[1].class = MESH_PATH_DIRECT; /* the other one is not tried yet */
	assert_false(detours(20000));
}

/* Relays are ready, and take the place of the candidates. */
static void goes_over_relays(void)
{
	static struct mesh_peer first_relay;

	first_relay = (struct mesh_peer){.process = process, .state = MESH_PEER_UP, .users = 2};
	assert_int_equal(mesh_relay_try_open(process, &attempt.handle, 1, &attempt.detour), 0);
	attempt.detour->peers[0] = &first_relay;
	attempt.detour->num_peers = 1;
	attempt.detour->try_ms = START + 4000;
	mesh_connect_detour(&attempt, START + 4000);
	assert_non_null(attempt.relay);
	assert_true(attempt.detoured);
}

static void test_relays_instead(void **state)
{
	(void)state;
	goes_over_relays();
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* Their NIC was being opened for all this time: nothing is known of the routes. */
static void test_untried(void **state)
{
	(void)state;
	attempt.num_peers = 0;
	goes_over_relays();
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* Other listeners of the node list the same addresses in another order; a new one is a new way. */
static void test_candidates(void **state)
{
	const struct mesh_path_candidate first = attempt.choice.candidates[0];

	(void)state;
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	attempt.choice.candidates[0] = attempt.choice.candidates[1];
	attempt.choice.candidates[1] = first;
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	mesh_addr_parse("10.7.3.2/24", &attempt.handle.endpoints[1].addr);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	attempt.choice.candidates[0].provider = MESH_PROVIDER_VERBS_RXM;
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	candidates_make(1, MESH_PATH_ROUTED);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

static void test_settling_removes_it(void **state)
{
	(void)state;
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	attempt.handle.node_id = NODE + 2;
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	attempt.handle.node_id = NODE;
	peers[1].state = MESH_PEER_UP;
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 1);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	candidates_make(PEERS, MESH_PATH_ROUTED);
	peers[1].state = MESH_PEER_CONNECTING;
	waits(4000);
	attempt.handle.node_id = NODE + 2;
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* A cable is used meanwhile: that says nothing about the routes. */
static void test_settling_elsewhere(void **state)
{
	(void)state;
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	attempt.pairs[0].class = attempt.pairs[1].class = MESH_PATH_DIRECT;
	peers[1].state = MESH_PEER_UP;
	mesh_connect_try_settle(&attempt);
	candidates_make(PEERS, MESH_PATH_ROUTED);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* There is room for so many nodes; a further one takes the place of the first. */
static void test_many_nodes(void **state)
{
	int i;

	(void)state;
	for (i = 0; i <= MESH_DEAD_ROUTES_MAX; i++) {
		attempt.handle.node_id = NODE + (uint64_t)i;
		mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
		mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	}
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	attempt.handle.node_id = NODE;
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	attempt.handle.node_id = NODE + 1;
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	mesh_dead_routes_clear(process);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* Relays with RDMA that nobody can use say nothing about the routes, nor the other way round. */
static void test_kinds(void **state)
{
	(void)state;
	mesh_dead_routes_add(&attempt, MESH_DEAD_RDMA);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	waits(4000);
	candidates_make(1, MESH_PATH_ROUTED); /* the relays are the same */
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	mesh_dead_routes_remove(process, NODE, MESH_DEAD_RDMA);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	mesh_dead_routes_add(&attempt, MESH_DEAD_RDMA);
	mesh_dead_routes_clear(process);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
}

/* Links that were not confirmed in time are remembered for the node, and as these links. */
static void test_hope(void **state)
{
	(void)state;
	assert_false(mesh_dead_routes_have_hope(process, NODE, 5));
	mesh_dead_routes_hope_add(process, NODE, 5);
	assert_true(mesh_dead_routes_have_hope(process, NODE, 5));
	assert_false(mesh_dead_routes_have_hope(process, NODE, 6));
	assert_false(mesh_dead_routes_have_hope(process, NODE + 1, 5));
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	mesh_dead_routes_hope_add(process, NODE, 6);
	assert_false(mesh_dead_routes_have_hope(process, NODE, 5));
	mesh_dead_routes_remove(process, NODE, MESH_DEAD_RDMA);
	assert_true(mesh_dead_routes_have_hope(process, NODE, 6));
	mesh_dead_routes_remove(process, NODE, MESH_DEAD_HOPE);
	assert_false(mesh_dead_routes_have_hope(process, NODE, 6));
	mesh_dead_routes_hope_add(process, NODE, 6);
	mesh_dead_routes_clear(process);
	assert_false(mesh_dead_routes_have_hope(process, NODE, 6));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, attempt_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waited_for_once),
		TEST(test_answered),
		TEST(test_fallback),
		TEST(test_slow_cable),
		TEST(test_relays_instead),
		TEST(test_untried),
		TEST(test_candidates),
		TEST(test_settling_removes_it),
		TEST(test_settling_elsewhere),
		TEST(test_many_nodes),
		TEST(test_kinds),
		TEST(test_hope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
