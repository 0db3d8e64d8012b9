/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_log.c - which reason the message about an attempt that was given up names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "nic/addr.h"
#include "setup/connect_log.h"
#include "setup/relay_try.h"
#include "setup/setup.h"

#include "log_capture.h"

static struct mesh_setup setup_state;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_nic nic;
static struct mesh_domain domain;
static struct mesh_peer peer;
static struct mesh_connect attempt;
static struct mesh_relay_try relay;

/* An attempt from a to c, which has one routed candidate; relay b has refused. */
static int setup(void **state)
{
	struct mesh_process *process = &setup_state.process;

	(void)state;
	memset(&setup_state, 0, sizeof(setup_state));
	memset(&peer, 0, sizeof(peer));
	memset(&attempt, 0, sizeof(attempt));
	memset(&relay, 0, sizeof(relay));
	mesh_lock_init(&process->lock);
	strcpy(process->name, "a");
	strcpy(nic.netdev, "lo");
	assert_int_equal(mesh_addr_parse("10.7.1.1/24", &nic.source), 0);
	process->nics[0] = &nic;
	process->num_endpoints = 1;
	process->endpoints[0].addr = nic.source;
	domain.nic = &nic;
	domain.provider = MESH_PROVIDER_TCP;
	peer.process = process;
	peer.domain = &domain;
	strcpy(peer.name, "c");
	assert_int_equal(mesh_addr_parse("10.7.2.2/24", &peer.address.addr), 0);
	attempt.net = &net;
	attempt.state = MESH_CONNECT_PEERS;
	strcpy(attempt.handle.node, "c");
	attempt.handle.num_endpoints = 1;
	attempt.handle.endpoints[0].addr = peer.address.addr;
	attempt.choice.num_candidates = 1;
	attempt.choice.candidates[0].class = MESH_PATH_ROUTED;
	attempt.started_ms = 1000;
	relay.process = process;
	relay.handle = &attempt.handle;
	relay.tried.num = 1;
	relay.tried.all[0].refusal = MESH_REFUSAL_RELAY_FULL;
	strcpy(relay.tried.all[0].node, "b");
	log_capture_start();
	mesh_lock_take(&process->lock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_lock_release(&setup_state.process.lock);
	mesh_lock_destroy(&setup_state.process.lock);
	log_capture_stop();
	return 0;
}

/* One line at the end, with this, and nothing about a NIC or a cable that is well. */
static void says(const char *text)
{
	mesh_connect_log_timeout(&attempt, 61000);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, text));
}

static void names_the_routes(void)
{
	says("node a gave up connecting to node c");
	assert_true(log_captured(MESH_LOG_WARN, "after 60000 ms: the routes let nothing through, "
						"as from lo (10.7.1.1) to 10.7.2.2"));
	assert_true(log_captured(MESH_LOG_WARN, "No relay has led there either (node b: "));
	assert_false(log_captured(MESH_LOG_WARN, "no common subnet"));
	assert_false(log_captured(MESH_LOG_WARN, "libfabric has not opened"));
}

/* A relay was found, and the circuit through it was not opened in time. */
static void test_detoured(void **state)
{
	(void)state;
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	names_the_routes();
}

/* The same, and the candidates were tried again beside it. */
static void test_detoured_beside_candidates(void **state)
{
	(void)state;
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	test_detoured(state);
}

/* The relay has refused a moment ago, and the candidates have not begun again. */
static void test_detour_refused(void **state)
{
	(void)state;
	attempt.detour = &relay;
	names_the_routes();
}

/* The candidates are being tried again: their reason counts, and that of the relays. */
static void test_detour_beside_candidates(void **state)
{
	(void)state;
	attempt.detour = &relay;
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	peer.state = MESH_PEER_RETRY;
	strcpy(peer.reason, "it does not answer on port 7");
	says("gave up connecting from lo (10.7.1.1) to node c");
	assert_true(log_captured(MESH_LOG_WARN, "it does not answer on port 7. No relay has led "
						"there either (node b: "));
}

/* Relays were looked for because the NIC failed to open: there is a route, and there are cables. */
static void test_unopened(void **state)
{
	(void)state;
	attempt.choice.num_candidates = 0;
	attempt.unopened = 1;
	attempt.relay = &relay;
	says("node a cannot connect to node c");
	assert_true(log_captured(MESH_LOG_WARN, "libfabric cannot open lo, which leads there; no "
						"neighbour relays, asked for 60000 ms (node b: "));
	assert_false(log_captured(MESH_LOG_WARN, "no common subnet"));
}

/* The same before the deadline, where no neighbour runs a rank. */
static void test_unopened_alone(void **state)
{
	(void)state;
	attempt.choice.num_candidates = 0;
	attempt.unopened = 1;
	attempt.relay = &relay;
	mesh_connect_log_no_path(&attempt);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "libfabric cannot open lo, which leads there."));
}

/* libfabric takes too long. */
static void test_opening(void **state)
{
	(void)state;
	says("libfabric has not opened lo, which leads there. Is this node short of CPU time");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_detoured),
		TEST(test_detour_refused),
		TEST(test_detoured_beside_candidates),
		TEST(test_unopened),
		TEST(test_detour_beside_candidates),
		TEST(test_unopened_alone),
		TEST(test_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
