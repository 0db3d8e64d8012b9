/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_connect_detour.c - routed candidates while a relay, which has taken their place because the
 * routes were dead, does not answer OPEN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "control/peer.h"
#include "control/peer_index.h"
#include "nic/addr.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/setup.h"

/* Of the other node; this one has a single NIC, so each is tried by itself. */
#define NICS 2
#define CONTROL_PORT 4000
#define COOKIE 77
/* When OPEN was sent, in milliseconds of the clock. */
#define SENT 100000

static struct mesh_process process;
static struct mesh_net net = {.process = &process};
static const struct mesh_nic nic = {.netdev = "lo"}; /* has a carrier */
static struct mesh_domain domain;
static struct mesh_peer peers[NICS];
static struct mesh_connect attempt;
static struct mesh_relay_try relay;
/* The relay that does not answer. */
static struct mesh_peer silent;

static void peer_make(int there)
{
	struct mesh_peer *peer = &peers[there];

	peer->process = &process;
	peer->domain = &domain;
	peer->watch.fd = -1;
	peer->address = attempt.handle.endpoints[there];
	peer->control_port = CONTROL_PORT;
	peer->state = MESH_PEER_CONNECTING;
	LIST_INSERT_HEAD(&process.peers, peer, entry);
	mesh_peer_index_add(peer);
}

static int setup(void **state)
{
	struct mesh_handle *handle = &attempt.handle;
	int i;

	(void)state;
	memset(&process, 0, sizeof(process));
	memset(peers, 0, sizeof(peers));
	memset(&attempt, 0, sizeof(attempt));
	mesh_lock_init(&process.lock);
	process.engine.wake_fd = process.engine.epoll_fd = -1;
	process.counters = &process.own_counters;
	process.node_id = 1;
	process.config.max_paths = 8;
	process.domains[0] = &domain;
	process.nics[0] = domain.nic = &nic;
	attempt.net = &net;
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	attempt.open_ms = SENT;
	attempt.choice.num_candidates = NICS;
	memset(&silent, 0, sizeof(silent));
	silent.process = relay.process = &process;
	silent.watch.fd = -1;
	silent.state = MESH_PEER_UP;
	silent.users = 1;
	relay.peers[0] = &silent;
	relay.num_peers = 1;
	handle->node_id = 2;
	handle->control_port = CONTROL_PORT;
	handle->cookie = COOKIE;
	mesh_lock_take(&process.lock);
	for (i = 0; i < NICS; i++) {
		mesh_addr_parse("10.1.0.2", &handle->endpoints[i].addr);
		handle->endpoints[i].addr.bytes[1] = (uint8_t)i;
		peer_make(i);
		attempt.choice.candidates[i] = (struct mesh_path_candidate){
			.remote = (uint8_t)i,
			.class = MESH_PATH_ROUTED,
		};
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	attempt.relay = NULL;
	mesh_connect_try_end(&attempt);
	mesh_lock_release(&process.lock);
	mesh_lock_destroy(&process.lock);
	return 0;
}

static bool ready(uint64_t after_ms)
{
	bool is_ready = mesh_connect_detour_beside(&attempt, SENT + after_ms);

	assert_ptr_equal(attempt.relay, &relay);
	assert_int_equal(relay.num_peers, 1); /* OPEN still waits for its answer */
	return is_ready;
}

static void tries(int there)
{
	assert_int_equal(attempt.num_peers, 1);
	assert_ptr_equal(attempt.peers[0], &peers[there]);
}

/* They are tried beside OPEN, one after the other, and take the relay's place when one is up. */
static void test_tried_again(void **state)
{
	(void)state;
	assert_false(ready(2999));
	assert_int_equal(attempt.num_peers, 0);
	assert_false(ready(3000));
	tries(0);
	assert_false(ready(6001));
	tries(1);
	assert_int_equal(peers[0].users, 0);
	peers[1].state = MESH_PEER_UP;
	assert_true(ready(6100));
	mesh_connect_detour_leave(&attempt);
	assert_null(attempt.relay);
	assert_ptr_equal(attempt.detour, &relay);
	assert_false(attempt.detoured);
	assert_int_equal(relay.num_peers, 0);
	assert_int_equal(silent.users, 0);
	tries(1);
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
	process.domains[0] = NULL;
	process.dev_states[0] = MESH_DEV_OPENING;
	assert_false(ready(3000));
	assert_int_equal(attempt.num_peers, 0);
	process.domains[0] = &domain;
	process.dev_states[0] = MESH_DEV_OPEN;
	assert_false(ready(3001));
	tries(0);
}

/* No neighbour leads there after 5 s; but the mesh may still be searched, or searched again. */
static void test_hopeless(void **state)
{
	(void)state;
	attempt.started_ms = SENT;
	relay.tried.num = 0;
	relay.found_ms = 0;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, SENT + 5000));
	relay.found_ms = SENT + 4600;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, SENT + 4999));
	assert_true(mesh_connect_relay_is_hopeless(&attempt, SENT + 5000));
	relay.tried.num = 1;
	assert_false(mesh_connect_relay_is_hopeless(&attempt, SENT + 5000));
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
