/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_foreign.c - how long a listener of another protocol version is dialled. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "control/peer.h"
#include "control/peer_index.h"
#include "nic/addr.h"
#include "setup/connect_foreign.h"
#include "setup/connect_try.h"
#include "setup/setup.h"

/* Of the other node; this one has a single NIC, so each is dialled by itself. */
#define NICS 3
#define CONTROL_PORT 4000
#define COOKIE 77
/* When the attempt starts and ends, in milliseconds of the clock. */
#define START 100000
#define DEADLINE (START + 60000)

static struct mesh_process process;
static struct mesh_net net = {.process = &process};
static const struct mesh_nic nic = {.netdev = "lo"}; /* has a carrier */
static struct mesh_domain domain;
static struct mesh_peer peers[NICS];
static struct mesh_connect attempt;

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
	attempt.started_ms = START;
	attempt.deadline_ms = DEADLINE;
	handle->foreign = true;
	handle->node_id = 2;
	handle->control_port = CONTROL_PORT;
	handle->cookie = COOKIE;
	mesh_lock_take(&process.lock);
	for (i = 0; i < NICS; i++) {
		mesh_addr_parse("10.1.0.2", &handle->endpoints[i].addr);
		handle->endpoints[i].addr.bytes[1] = (uint8_t)i;
		peer_make(i);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_connect_try_end(&attempt);
	mesh_lock_release(&process.lock);
	mesh_lock_destroy(&process.lock);
	return 0;
}

static void candidates(int num)
{
	int i;

	attempt.choice.num_candidates = num;
	for (i = 0; i < num; i++)
		attempt.choice.candidates[i] = (struct mesh_path_candidate){.remote = (uint8_t)i};
}

static bool over(uint64_t after_ms)
{
	int ret = mesh_connect_foreign_advance(&attempt, START + after_ms);

	assert_true(!ret || ret == -EPROTONOSUPPORT);
	return ret;
}

static void dials(int there)
{
	assert_int_equal(attempt.num_peers, 1);
	assert_ptr_equal(attempt.peers[0], &peers[there]);
}

/* Nobody answers: the only candidate has 5 s. */
static void test_alone(void **state)
{
	(void)state;
	candidates(1);
	assert_false(over(0));
	dials(0);
	assert_false(over(4999));
	assert_true(over(5000));
}

/* The connection's own deadline is nearer. */
static void test_deadline(void **state)
{
	(void)state;
	attempt.deadline_ms = START + 2000;
	candidates(1);
	assert_false(over(0));
	assert_false(over(1999));
	assert_true(over(2000));
}

/* A cable that is dead leaves time for the others, each of which is dialled once. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	candidates(3);
	assert_false(over(0));
	dials(0);
	assert_false(over(3000));
	dials(0);
	assert_false(over(3001));
	dials(1);
	assert_false(over(6002));
	dials(2);
	assert_false(over(11001));
	dials(2);
	assert_true(over(11002));
}

static void test_deadline_among_others(void **state)
{
	(void)state;
	attempt.deadline_ms = START + 4000;
	candidates(3);
	assert_false(over(0));
	assert_false(over(3001));
	dials(1);
	assert_true(over(4000));
}

/* The listener on the second one is told. */
static void test_second_answers(void **state)
{
	(void)state;
	candidates(2);
	assert_false(over(0));
	assert_false(over(3001));
	dials(1);
	peers[1].sent_cookie = COOKIE;
	peers[1].refusal = MESH_REFUSAL_VERSION;
	assert_true(over(3002));
}

/* What opening the NIC takes does not count as dialling. */
static void test_slow_nic(void **state)
{
	(void)state;
	candidates(1);
	process.domains[0] = NULL;
	process.dev_states[0] = MESH_DEV_OPENING;
	assert_false(over(0));
	assert_false(over(8000));
	process.domains[0] = &domain;
	process.dev_states[0] = MESH_DEV_OPEN;
	assert_false(over(8001));
	dials(0);
	assert_false(over(13000));
	assert_true(over(13001));
}

static void test_nic_does_not_open(void **state)
{
	(void)state;
	candidates(1);
	process.domains[0] = NULL;
	process.dev_states[0] = MESH_DEV_OPENING;
	assert_false(over(9999));
	assert_true(over(10000));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_alone),
		TEST(test_deadline),
		TEST(test_one_after_the_other),
		TEST(test_deadline_among_others),
		TEST(test_second_answers),
		TEST(test_slow_nic),
		TEST(test_nic_does_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
