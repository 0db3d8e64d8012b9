/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_try.c - when the peers of a try are waited for, and when they are not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/peer_life.h"
#include "setup/connect_judge.h"
#include "setup/connect_log.h"
#include "setup/connect_try.h"
#include "setup/setup.h"

#include "log_capture.h"

#define NOW 1000000

static const struct mesh_nic nic = {.netdev = "eth7", .source = {.family = MESH_FAMILY_IPV4}};
static struct mesh_domain domain = {.nic = &nic};
static struct mesh_setup mine;
static struct mesh_process *const process = &mine.process;
static struct mesh_net net;
static struct mesh_peer peers[2];
static struct mesh_connect trying;

/* Two cables. One leads to a peer that is up, the other one's has just been tried. */
static int setup(void **state)
{
	int i;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	memset(peers, 0, sizeof(peers));
	memset(&trying, 0, sizeof(trying));
	mesh_lock_init(&process->lock);
	process->engine.wake_fd = -1;
	net.process = process;
	trying.net = &net;
	trying.started_ms = NOW;
	trying.try_ms = NOW;
	trying.num_peers = trying.choice.num_candidates = 2;
	for (i = 0; i < 2; i++) {
		trying.peers[i] = &peers[i];
		peers[i].process = process;
		peers[i].domain = &domain;
		peers[i].watch.fd = -1;
		mesh_addr_parse(i ? "10.7.1.2" : "10.7.0.2", &peers[i].address.addr);
	}
	peers[0].state = MESH_PEER_UP;
	peers[1].state = MESH_PEER_CONNECTING;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_lock_destroy(&process->lock);
	return 0;
}

static enum mesh_verdict verdict(uint64_t now_ms)
{
	enum mesh_verdict judged;

	mesh_lock_take(&process->lock);
	judged = mesh_connect_judge(&trying, now_ms);
	mesh_lock_release(&process->lock);
	return judged;
}

static bool ready(uint64_t now_ms)
{
	return verdict(now_ms) == MESH_VERDICT_READY;
}

static bool refused(uint64_t now_ms)
{
	return verdict(now_ms) == MESH_VERDICT_REFUSED;
}

static void test_other_path_follows(void **state)
{
	(void)state;
	peers[1].silent_ms = NOW;
	assert_false(ready(NOW));
	assert_false(ready(NOW + 2999));
	assert_true(ready(NOW + 3000));
}

/* It was tried a moment after the caller had looked at the clock. */
static void test_tried_just_now(void **state)
{
	(void)state;
	peers[1].silent_ms = NOW + 1;
	assert_false(ready(NOW));
}

static void test_refused_just_now(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		peers[i].state = MESH_PEER_RETRY;
		peers[i].first_refused_ms = NOW + 1;
	}
	assert_false(refused(NOW));
	assert_false(refused(NOW + 3001));
	assert_true(refused(NOW + 3002));
}

/* What a peer sent before it was lost has its time, also if the loss is news. */
static void test_lost_just_now(void **state)
{
	(void)state;
	peers[1].state = MESH_PEER_LOST;
	peers[1].users = 1;
	peers[1].lost_ms = NOW + 1;
	mesh_lock_take(&process->lock);
	mesh_peer_tick(&peers[1], NOW);
	mesh_lock_release(&process->lock);
	assert_false(peers[1].buried);
}

static void timeout_log(void)
{
	mesh_lock_take(&process->lock);
	mesh_connect_log_timeout(&trying, NOW + 5000);
	mesh_lock_release(&process->lock);
}

static void slow_log(void)
{
	mesh_lock_take(&process->lock);
	mesh_connect_log_slow(&trying, NOW + 5000);
	mesh_lock_release(&process->lock);
}

/* Of several paths, all of which are up, the second one's ACCEPT does not come. */
static void test_peer_is_named(void **state)
{
	(void)state;
	peers[1].state = MESH_PEER_UP;
	trying.state = MESH_CONNECT_SENT;
	trying.num_accepted = 1;
	log_capture_start();
	timeout_log();
	assert_true(log_captured(MESH_LOG_WARN, "to 10.7.1.2 after 5000 ms"));
	assert_true(log_captured(MESH_LOG_WARN, "it does not answer our request"));
	log_capture_stop();
}

/* The message names the cause of a peer that answered, not of the first one. */
static void test_cause_is_named(void **state)
{
	(void)state;
	peers[0].state = MESH_PEER_CONNECTING;
	peers[0].silent_ms = NOW;
	log_capture_start();
	timeout_log();
	assert_true(log_captured(MESH_LOG_WARN, "to 10.7.0.2 after 5000 ms"));
	strcpy(peers[1].reason, "Connection refused");
	slow_log();
	assert_true(log_captured(MESH_LOG_WARN, "to 10.7.1.2 (Connection refused)"));
	strcpy(peers[0].reason, "Network is unreachable");
	strcpy(peers[1].reason, "it uses another protocol version");
	peers[1].refusal = MESH_REFUSAL_VERSION;
	assert_true(refused(NOW + 5000));
	timeout_log();
	assert_true(log_captured(MESH_LOG_WARN, "it uses another protocol version"));
	log_capture_stop();
}

/* Every error is reported, and none by the name of another. */
static void test_no_id_left(void **state)
{
	struct mesh_sink taken;
	uint32_t i;

	(void)state;
	mesh_lock_init(&domain.lock);
	for (i = 0; i < MESH_COMM_IDS; i++)
		domain.message_sinks[i] = &taken;
	process->domains[0] = &domain;
	process->config.max_paths = 2;
	trying.handle.node_id = 0xabc;
	trying.choice.num_candidates = 1;
	trying.num_peers = 0;
	log_capture_start();
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -ENOSPC);
	mesh_lock_release(&process->lock);
	assert_true(
		log_captured(MESH_LOG_WARN, "begin to connect to node id 0000000000000abc: No"));
	log_capture_stop();
	mesh_lock_destroy(&domain.lock);
}

/*
 * One NIC has no carrier, the other one's opening fails while its carrier is up: the attempt waits
 * for the first NIC, however long the second one took.
 */
static void test_waits_for_the_carrier_of_another(void **state)
{
	static const struct mesh_nic nics[] = {{.netdev = "no-such-nic"}, {.netdev = "lo"}};
	int i;

	(void)state;
	trying.num_peers = 0;
	trying.handle.num_endpoints = 2;
	process->config.max_paths = 8;
	for (i = 0; i < 2; i++) {
		process->nics[i] = &nics[i];
		process->providers[i] = MESH_PROVIDER_TCP;
		process->endpoints[i].nic = (uint8_t)i;
		trying.choice.candidates[i] = (struct mesh_path_candidate){
			.local = (uint8_t)i,
			.remote = (uint8_t)i,
			.provider = MESH_PROVIDER_TCP,
		};
	}
	process->num_devs = 2;
	process->dev_states[0] = MESH_DEV_FAILED;
	process->dev_states[1] = MESH_DEV_OPENING;
	process->opening_ms[1] = mesh_clock_ms();
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -EAGAIN);
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -EAGAIN);
	process->dev_states[1] = MESH_DEV_FAILED;
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -ENOLINK);
	assert_int_equal(trying.choice.num_candidates, 1);
	assert_int_equal(trying.choice.candidates[0].local, 0);
	assert_true(trying.away);
	mesh_lock_release(&process->lock);
}

/*
 * One NIC is slow to open, the other one cannot be opened: the attempt waits for the first one, and
 * the error names that.
 */
static void test_waits_for_a_slow_nic(void **state)
{
	static const struct mesh_nic slow = {.netdev = "slow"}, lo = {.netdev = "lo"};
	int i;

	(void)state;
	process->nics[0] = &slow;
	process->nics[1] = &lo;
	trying.num_peers = 0;
	process->num_devs = trying.handle.num_endpoints = 2;
	process->config.max_paths = 8;
	for (i = 0; i < 2; i++) {
		process->endpoints[i].nic = trying.choice.candidates[i].local = (uint8_t)i;
		trying.choice.candidates[i].remote = (uint8_t)i;
		process->dev_states[i] = MESH_DEV_OPENING;
	}
	process->opening_ms[1] = mesh_clock_ms();
	trying.needed = 3; /* it has asked for both */
	log_capture_start();
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -EAGAIN);
	process->dev_states[1] = MESH_DEV_FAILED;
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -EAGAIN);
	assert_int_equal(trying.choice.num_candidates, 1);
	mesh_lock_release(&process->lock);
	timeout_log();
	assert_true(log_captured(MESH_LOG_WARN, "libfabric has not opened slow, which leads"));
	process->dev_states[0] = MESH_DEV_FAILED;
	process->nics[0] = &lo;
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_connect_try_start(&trying, NOW), -ENODEV);
	mesh_lock_release(&process->lock);
	assert_int_equal(trying.unopened, 1);
	log_capture_stop();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_other_path_follows),	 TEST(test_tried_just_now),
		TEST(test_refused_just_now),	 TEST(test_lost_just_now),
		TEST(test_peer_is_named),	 TEST(test_cause_is_named),
		TEST(test_no_id_left),		 TEST(test_waits_for_the_carrier_of_another),
		TEST(test_waits_for_a_slow_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
