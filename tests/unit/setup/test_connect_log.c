/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_log.c - which reason the message about an attempt that was given up names. */
#include <stdio.h>
#include <string.h>

#include "nic/addr.h"
#include "setup/connect_log.h"
#include "setup/relay_try.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "unit.h"

static struct mesh_setup setup_state;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_nic nic;
static struct mesh_domain domain;
static struct mesh_peer peer;
static struct mesh_connect attempt;
static struct mesh_relay_try relay;

/* An attempt from a to c, which has one routed candidate; relay b has refused. */
static int setup(void)
{
	struct mesh_process *process = &setup_state.process;

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

static int teardown(void)
{
	mesh_lock_release(&setup_state.process.lock);
	mesh_lock_destroy(&setup_state.process.lock);
	log_capture_stop();
	return 0;
}

TESTS_USE(setup, teardown);

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
TEST(detoured)
{
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	names_the_routes();
}

/* The same, and the candidates were tried again beside it. */
TEST(detoured_beside_candidates)
{
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	test_detoured();
}

/* The relay has refused a moment ago, and the candidates have not begun again. */
TEST(detour_refused)
{
	attempt.detour = &relay;
	names_the_routes();
}

/* The candidates are being tried again: their reason counts, and that of the relays. */
TEST(detour_beside_candidates)
{
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
TEST(unopened)
{
	attempt.choice.num_candidates = 0;
	attempt.unopened = 1;
	attempt.relay = &relay;
	says("node a cannot connect to node c");
	assert_true(log_captured(MESH_LOG_WARN, "libfabric cannot open lo, which leads there; no "
						"neighbour relays, asked for 60000 ms (node b: "));
	assert_false(log_captured(MESH_LOG_WARN, "no common subnet"));
}

/* The same before the deadline, where no neighbour runs a rank. */
TEST(unopened_alone)
{
	attempt.choice.num_candidates = 0;
	attempt.unopened = 1;
	attempt.relay = &relay;
	mesh_connect_log_no_path(&attempt);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "libfabric cannot open lo, which leads there."));
}

/* libfabric takes too long. */
TEST(opening)
{
	says("libfabric has not opened lo, which leads there. Is this node short of CPU time");
}

/* Relays with RDMA go before the routed candidate, which has none. */
static void rdma_before_tcp(void)
{
	setup_state.process.endpoints[0].provider = MESH_PROVIDER_VERBS_RXM;
	attempt.handle.endpoints[0].provider = MESH_PROVIDER_VERBS_RXM;
	attempt.choice.candidates[0].provider = MESH_PROVIDER_TCP;
	attempt.pairs[0] = attempt.choice.candidates[0];
	attempt.deadline_ms = 61000;
	relay.before_tcp = true;
}

static void slow_says(const char *text)
{
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	mesh_connect_log_slow(&attempt, 5999);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	mesh_connect_log_slow(&attempt, 6000);
	mesh_connect_log_slow(&attempt, 7000);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, text));
}

/* The candidate is up and waits: its end is not silent, and the connection is not given up. */
TEST(waits_for_rdma)
{
	rdma_before_tcp();
	attempt.detour = &relay;
	peer.state = MESH_PEER_UP;
	slow_says("still connecting to node c");
	assert_true(log_captured(MESH_LOG_WARN,
				 "its route from lo (10.7.1.1) to 10.7.2.2 is up, but it has no "
				 "RDMA, and relays with RDMA on each hop go before it (node b: "));
	assert_true(log_captured(MESH_LOG_WARN, "; using the route in 15 s at the latest"));
	assert_false(log_captured(MESH_LOG_WARN, "no answer yet"));
	assert_false(log_captured(MESH_LOG_WARN, "giving up"));
}

/* The mesh is still searched for them. */
TEST(waits_for_search)
{
	rdma_before_tcp();
	attempt.detour = &relay;
	relay.tried.num = 0;
	peer.state = MESH_PEER_UP;
	slow_says("relays with RDMA on each hop go before it (none found so far)");
}

/* It is not up, whatever it waits for besides. */
TEST(slow_candidate)
{
	rdma_before_tcp();
	attempt.detour = &relay;
	slow_says("(no answer yet); giving up in 55 s");
}

static void names_relays_and_route(const char *why)
{
	says("node a gave up connecting to node c");
	assert_true(log_captured(MESH_LOG_WARN, "after 60000 ms: relays with RDMA on each hop have "
						"not led there (node b: "));
	assert_true(log_captured(MESH_LOG_WARN,
				 "), and neither has the route without RDMA behind them, from lo "
				 "(10.7.1.1) to 10.7.2.2 ("));
	assert_true(log_captured(MESH_LOG_WARN, why));
	assert_false(log_captured(MESH_LOG_WARN, "let nothing through"));
}

/* They had the turn at the end, and the route was tried beside them. */
TEST(rdma_relays)
{
	rdma_before_tcp();
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	names_relays_and_route("(it was not tried again)");
}

TEST(rdma_relays_beside_candidates)
{
	rdma_before_tcp();
	attempt.state = MESH_CONNECT_SENT;
	attempt.relay = &relay;
	attempt.detoured = true;
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	peer.control_port = 7;
	names_relays_and_route("(no answer from TCP port 7: ");
}

TEST(rdma_relays_refused)
{
	rdma_before_tcp();
	attempt.detour = &relay;
	names_relays_and_route("(it was not tried again)");
}

/* The candidate was tried last. Relays are named only if there were any. */
static void candidate_last(void)
{
	rdma_before_tcp();
	attempt.detour = &relay;
	attempt.peers[0] = &peer;
	attempt.num_peers = 1;
	peer.state = MESH_PEER_RETRY;
	strcpy(peer.reason, "it does not answer on port 7");
	says("it does not answer on port 7");
}

TEST(rdma_relays_before)
{
	candidate_last();
	assert_true(log_captured(MESH_LOG_WARN, "on port 7. No relay with RDMA on each hop has led "
						"there either (node b: "));
}

TEST(no_rdma_relays)
{
	relay.tried.num = 0;
	candidate_last();
	assert_false(log_captured(MESH_LOG_WARN, "relay"));
	assert_false(log_captured(MESH_LOG_WARN, "no neighbour runs"));
}
