/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_connect_yield.c - routed candidates without RDMA, while relays with RDMA on each hop may
 * lead to the node: those go before them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "setup/connect_lanes.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/dead_routes.h"
#include "setup/setup.h"

#include "connect_fixture.h"

#define TIMEOUT_MS 60000

static struct mesh_peer first_relay; /* a node that relays with RDMA */
static bool ready;		     /* that node is up */

bool __wrap_mesh_relay_try_is_ready(struct mesh_relay_try *try, uint64_t now_ms);
bool __wrap_mesh_relay_try_is_ready(struct mesh_relay_try *try, uint64_t now_ms)
{
	(void)now_ms;
	if (!ready)
		return false;
	first_relay = (struct mesh_peer){.process = process, .state = MESH_PEER_UP, .users = 2};
	try->peers[0] = &first_relay;
	try->num_peers = 1;
	return true;
}

void __wrap_mesh_reroute_soon(struct mesh_comm *comm);
void __wrap_mesh_reroute_soon(struct mesh_comm *comm)
{
	(void)comm;
}

/* An attempt whose only candidate is up. Both nodes have a NIC with RDMA, which it does not use. */
static int setup(void **state)
{
	(void)state;
	attempt_make();
	process->config.lanes = 1;
	process->num_endpoints = 1;
	process->endpoints[0].provider = MESH_PROVIDER_VERBS_RXM;
	attempt.try_ms = START;
	attempt.deadline_ms = START + TIMEOUT_MS;
	attempt.handle.endpoints[0].provider = MESH_PROVIDER_TCP;
	attempt.handle.endpoints[1].provider = MESH_PROVIDER_VERBS_RXM;
	candidates_make(1, MESH_PATH_RESERVE_ROUTED);
	peers[0].state = MESH_PEER_UP;
	ready = false;
	return 0;
}

static enum mesh_verdict judge(uint64_t age_ms)
{
	enum mesh_verdict verdict = mesh_connect_lanes_judge(&attempt, START + age_ms);

	if (verdict != MESH_VERDICT_READY)
		mesh_connect_detour(&attempt, START + age_ms);
	return verdict;
}

/* It waits until it is known that no relay helps. */
static void test_waits(void **state)
{
	(void)state;
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_non_null(attempt.detour);
	assert_true(attempt.detour->before_tcp);
	assert_int_equal(judge(5000), MESH_VERDICT_WAIT);
	attempt.detour->vain = true;
	assert_int_equal(judge(5001), MESH_VERDICT_READY);
	assert_null(attempt.relay);
	assert_false(log_captured(MESH_LOG_INFO, "relay"));
}

/* With a short timeout, too, the candidate gets its turn before the connection fails. */
static void test_short_timeout(void **state)
{
	(void)state;
	attempt.deadline_ms = START + 9000;
	assert_int_equal(judge(2999), MESH_VERDICT_WAIT);
	assert_int_equal(judge(3000), MESH_VERDICT_READY);
	assert_null(attempt.relay);
}

/* Nor does an OPEN without an answer use up such a timeout. */
static void test_short_unanswered(void **state)
{
	(void)state;
	attempt.deadline_ms = START + 9000;
	process->dev_states[0] = MESH_DEV_OPENING;
	process->providers[0] = MESH_PROVIDER_TCP;
	ready = true;
	judge(0);
	assert_non_null(attempt.relay);
	attempt.state = MESH_CONNECT_SENT;
	attempt.open_ms = START;
	attempt.num_peers = 1;
	attempt.peers[0] = &peers[0];
	peers[0].users = 2;
	assert_false(mesh_connect_detour_beside(&attempt, START + 2999));
	assert_true(mesh_connect_detour_beside(&attempt, START + 3000));
}

static void takes_at_once(void)
{
	ready = true;
	assert_int_equal(judge(0), MESH_VERDICT_READY);
	assert_null(attempt.detour);
	assert_null(attempt.relay);
}

static void test_no_rdma_here(void **state)
{
	(void)state;
	process->endpoints[0].provider = MESH_PROVIDER_TCP;
	takes_at_once();
}

static void test_no_rdma_there(void **state)
{
	(void)state;
	attempt.handle.num_endpoints = 1;
	takes_at_once();
}

static void test_no_relays(void **state)
{
	(void)state;
	process->relay = NULL;
	takes_at_once();
}

static void test_routed_rdma(void **state)
{
	(void)state;
	attempt.pairs[0].provider = MESH_PROVIDER_VERBS_RXM;
	takes_at_once();
}

/* Another candidate, with RDMA, at place @k; the other one is the one that is up. */
static void rdma_at(int k)
{
	attempt.choice.num_candidates = 2;
	attempt.choice.candidates[1 - k] = attempt.pairs[0];
	attempt.choice.candidates[k] = (struct mesh_path_candidate){
		.remote = 1,
		.provider = MESH_PROVIDER_VERBS_RXM,
		.class = MESH_PATH_ROUTED,
	};
}

/* It has its turn later, and relays do not go before it. */
static void test_later_rdma(void **state)
{
	(void)state;
	rdma_at(1);
	takes_at_once();
}

/* It had its turn in vain. */
static void test_earlier_rdma(void **state)
{
	(void)state;
	rdma_at(0);
	attempt.first_candidate = 1;
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
}

/* An earlier connection has found it dead. */
static void test_dead_rdma(void **state)
{
	(void)state;
	rdma_at(1);
	mesh_dead_routes_add(&attempt, MESH_DEAD_ROUTED);
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
}

/* Its NIC is not open after all this time. */
static void test_slow_rdma(void **state)
{
	(void)state;
	rdma_at(1);
	process->endpoints[1].nic = 1;
	attempt.choice.candidates[1].local = 1;
	process->providers[1] = MESH_PROVIDER_VERBS_RXM;
	process->dev_states[1] = MESH_DEV_OPENING;
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
}

/* Or it has no carrier. */
static void test_away_rdma(void **state)
{
	(void)state;
	rdma_at(1);
	process->endpoints[1].nic = 1;
	attempt.choice.candidates[1].local = 1;
	process->nics_away = 1 << 1;
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
}

static void test_cable(void **state)
{
	(void)state;
	attempt.pairs[0].class = MESH_PATH_RESERVE;
	takes_at_once();
}

/* Relays take the candidate's place, which is not dead. */
static void over_relays_at(uint64_t age_ms)
{
	ready = true;
	assert_int_equal(judge(age_ms), MESH_VERDICT_WAIT);
	assert_non_null(attempt.relay);
	assert_true(attempt.detoured);
	assert_null(attempt.detour);
	assert_int_equal(attempt.num_peers, 0);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
	assert_true(log_captured(MESH_LOG_INFO, "have no RDMA: going over relays that have it"));
	attempt.state = MESH_CONNECT_SENT;
	attempt.open_ms = START + age_ms;
	ready = false;
}

static void over_relays(void)
{
	over_relays_at(0);
}

/* The candidate is tried again, and is up. */
static void candidate_back(void)
{
	attempt.state = MESH_CONNECT_PEERS;
	attempt.num_peers = 1;
	attempt.peers[0] = &peers[0];
	peers[0].users = 2;
}

/* The relay has a name in messages. */
static void relay_asked(void)
{
	struct mesh_relays_tried *tried = attempt.relay ? &attempt.relay->tried
							: &attempt.detour->tried;

	tried->num = 1;
	strcpy(tried->all[0].node, "e");
}

/* One that refuses is asked again, for some time, before the candidate is used. */
static void test_refused(void **state)
{
	(void)state;
	over_relays();
	mesh_connect_relay_end(&attempt);
	assert_null(attempt.relay);
	candidate_back();
	assert_int_equal(judge(300), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
	attempt.detour->vain = true;
	relay_asked();
	assert_int_equal(judge(301), MESH_VERDICT_READY);
	assert_true(log_captured(MESH_LOG_INFO, "no relay with RDMA on each hop has led to node "));
}

/* Nor is the candidate dead because it dials again: it has all its time once more. */
static void test_not_dead(void **state)
{
	const uint64_t again_ms = mesh_clock_ms() - START; /* the attempt is old by then */

	(void)state;
	attempt.started_ms = 1;
	attempt.deadline_ms = UINT64_MAX;
	over_relays();
	mesh_connect_relay_end(&attempt);
	candidate_back();
	peers[0].state = MESH_PEER_CONNECTING;
	mesh_connect_detour(&attempt, START + again_ms + 3000);
	assert_true(attempt.detour->before_tcp);
	mesh_connect_detour(&attempt, START + again_ms + 5000);
	assert_false(attempt.detour->before_tcp);
}

/* No answer to OPEN: each hop may have to open a NIC first. Then the candidate is used. */
static void test_unanswered(void **state)
{
	(void)state;
	process->dev_states[0] = MESH_DEV_OPENING;
	process->providers[0] = MESH_PROVIDER_TCP;
	over_relays();
	assert_false(mesh_connect_detour_beside(&attempt, START + 9999));
	candidate_back();
	attempt.state = MESH_CONNECT_SENT;
	assert_true(mesh_connect_detour_beside(&attempt, START + 10000));
	relay_asked();
	mesh_connect_detour_leave(&attempt);
	attempt.state = MESH_CONNECT_PEERS;
	ready = true;
	assert_int_equal(judge(10000), MESH_VERDICT_READY);
	assert_null(attempt.relay);
	assert_false(log_captured(MESH_LOG_INFO, "work now"));
	assert_true(log_captured(MESH_LOG_INFO, "no relay with RDMA on each hop has led to node "));
	assert_true(log_captured(MESH_LOG_INFO, " (node e: no answer yet): going over the routes, "
						"which have no RDMA"));
}

/* The routes were dead, and work after all. */
static void test_dead_left(void **state)
{
	(void)state;
	peers[0].state = MESH_PEER_CONNECTING;
	ready = true;
	mesh_connect_detour(&attempt, START + 4000);
	assert_non_null(attempt.relay);
	relay_asked();
	candidate_back();
	peers[0].state = MESH_PEER_UP;
	mesh_connect_detour_leave(&attempt);
	assert_int_equal(judge(8000), MESH_VERDICT_READY);
	assert_true(log_captured(MESH_LOG_INFO, "work now, and no relay has answered: leaving"));
	assert_false(log_captured(MESH_LOG_INFO, "no relay with RDMA"));
}

/* What leads nowhere goes over any relay. */
static void test_dead(void **state)
{
	(void)state;
	peers[0].state = MESH_PEER_CONNECTING;
	assert_int_equal(judge(3999), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
	attempt.detour->found_ms = START;
	mesh_connect_detour(&attempt, START + 4000);
	assert_false(attempt.detour->before_tcp);
	assert_int_equal(attempt.detour->found_ms, 0);
	ready = true;
	mesh_connect_detour(&attempt, START + 4001);
	assert_non_null(attempt.relay);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* The attempt is ready, and NCCL gets its comm. The next one begins at the same time. */
static void next_attempt(void)
{
	struct mesh_comm comm = {.handle = NULL};

	attempt.comm = &comm;
	mesh_connect_relay_keep(&attempt);
	free(comm.handle);
	mesh_connect_relay_close(&attempt);
	attempt.comm = NULL;
	attempt.relay = attempt.detour = NULL;
	attempt.detoured = false;
	attempt.lanes = 0;
	attempt.rdma_ms = 0;
	ready = false;
	candidate_back();
}

/* The candidate was used, though relays are known. */
static void relays_in_vain(void)
{
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	attempt.detour->known = attempt.detour->vain = true;
	assert_int_equal(judge(10000), MESH_VERDICT_READY);
	next_attempt();
}

/* Later connections wait for relays that nobody can use for a short time, until they work. */
static void test_waited_for_once(void **state)
{
	(void)state;
	relays_in_vain();
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	assert_int_equal(judge(299), MESH_VERDICT_WAIT);
	assert_int_equal(judge(300), MESH_VERDICT_READY);
	next_attempt();
	attempt.handle.node_id = NODE + 2;
	assert_int_equal(judge(300), MESH_VERDICT_WAIT);
	mesh_connect_relay_close(&attempt);
	attempt.detour = NULL;
	attempt.handle.node_id = NODE;
	over_relays();
	assert_false(mesh_connect_detour_beside(&attempt, START + 299));
	next_attempt();
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	assert_int_equal(judge(9999), MESH_VERDICT_WAIT);
}

/* That time begins with the candidates, which may have come behind others. */
static void test_short_after_others(void **state)
{
	(void)state;
	relays_in_vain();
	assert_int_equal(judge(5000), MESH_VERDICT_WAIT);
	assert_int_equal(judge(5299), MESH_VERDICT_WAIT);
	over_relays_at(5299);
	mesh_connect_relay_end(&attempt); /* they refuse */
	candidate_back();
	assert_int_equal(judge(5300), MESH_VERDICT_READY);
}

/* Those that do not answer OPEN have no more time, either. */
static void test_unanswered_again(void **state)
{
	(void)state;
	process->dev_states[0] = MESH_DEV_OPENING;
	process->providers[0] = MESH_PROVIDER_TCP;
	relays_in_vain();
	over_relays();
	assert_false(mesh_connect_detour_beside(&attempt, START + 299));
	candidate_back();
	attempt.state = MESH_CONNECT_SENT;
	assert_true(mesh_connect_detour_beside(&attempt, START + 300));
}

/* Without a route nothing was waited for; a cable that is used meanwhile says nothing of them. */
static void test_not_in_vain(void **state)
{
	(void)state;
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	attempt.detour->vain = true;
	next_attempt();
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
	assert_int_equal(judge(0), MESH_VERDICT_WAIT);
	attempt.detour->known = attempt.detour->vain = true;
	attempt.pairs[0].class = MESH_PATH_DIRECT;
	next_attempt();
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_RDMA));
}

/* The candidate dials and greets by turns: it stays dead, and what relays have said is kept. */
static void test_stays_dead(void **state)
{
	(void)state;
	peers[0].state = MESH_PEER_CONNECTING;
	mesh_connect_detour(&attempt, START + 4000);
	assert_false(attempt.detour->before_tcp);
	attempt.detour->found_ms = START + 4000;
	peers[0].state = MESH_PEER_HELLO;
	mesh_connect_detour(&attempt, START + 4100);
	peers[0].state = MESH_PEER_CONNECTING;
	mesh_connect_detour(&attempt, START + 4200);
	assert_false(attempt.detour->before_tcp);
	assert_int_equal(attempt.detour->found_ms, START + 4000);
	peers[0].state = MESH_PEER_HELLO;
	ready = true;
	mesh_connect_detour(&attempt, START + 4300);
	assert_non_null(attempt.relay);
}

/* It is up after all: only relays with RDMA go before it. */
static void test_dead_no_longer(void **state)
{
	(void)state;
	peers[0].state = MESH_PEER_CONNECTING;
	mesh_connect_detour(&attempt, START + 4000);
	assert_false(attempt.detour->before_tcp);
	peers[0].state = MESH_PEER_UP;
	assert_int_equal(judge(4100), MESH_VERDICT_WAIT);
	assert_true(attempt.detour->before_tcp);
	attempt.detour->vain = true;
	assert_int_equal(judge(4200), MESH_VERDICT_READY);
}

/* The candidates for which relays are left have all their time once more, too. */
static void test_left(void **state)
{
	const uint64_t again_ms = mesh_clock_ms() - START;

	(void)state;
	attempt.started_ms = 1;
	attempt.deadline_ms = UINT64_MAX;
	over_relays();
	candidate_back();
	mesh_connect_detour_leave(&attempt);
	peers[0].state = MESH_PEER_CONNECTING;
	ready = true;
	mesh_connect_detour(&attempt, START + again_ms + 3000);
	assert_null(attempt.relay);
	mesh_connect_detour(&attempt, START + again_ms + 5000);
	assert_non_null(attempt.relay);
}

/* The handle had no room for all NICs: a HELLO may name a cable, which goes before relays. */
static void test_unknown_nics(void **state)
{
	(void)state;
	attempt.handle.total_nics = PEERS + 1;
	ready = true;
	peers[0].state = MESH_PEER_HELLO;
	assert_int_equal(judge(100), MESH_VERDICT_WAIT);
	assert_null(attempt.relay);
	peers[0].state = MESH_PEER_UP;
	mesh_connect_detour(&attempt, START + 200); /* in the step in which the try has begun */
	assert_null(attempt.relay);
	assert_int_equal(judge(300), MESH_VERDICT_WAIT);
	assert_non_null(attempt.relay);
}

/* The cable is known, and its NIC is being opened. */
static void test_learning(void **state)
{
	(void)state;
	attempt.learning = true;
	ready = true;
	assert_int_equal(judge(100), MESH_VERDICT_WAIT);
	assert_null(attempt.relay);
	attempt.learning = false;
	assert_int_equal(judge(200), MESH_VERDICT_WAIT);
	assert_non_null(attempt.relay);
}

/* No HELLO comes at all. */
static void test_unknown_nics_dead(void **state)
{
	(void)state;
	attempt.handle.total_nics = PEERS + 1;
	ready = true;
	peers[0].state = MESH_PEER_CONNECTING;
	assert_int_equal(judge(3999), MESH_VERDICT_WAIT);
	assert_null(attempt.relay);
	assert_int_equal(judge(4000), MESH_VERDICT_WAIT);
	assert_non_null(attempt.relay);
	assert_true(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

/* The same beside a cable that does not come up: only relays with RDMA are looked for. */
static void test_unknown_nics_cable(void **state)
{
	(void)state;
	attempt.handle.total_nics = PEERS + 1;
	attempt.choice.num_candidates = 2;
	attempt.choice.candidates[1] = (struct mesh_path_candidate){.class = MESH_PATH_DIRECT};
	ready = true;
	peers[0].state = MESH_PEER_CONNECTING;
	mesh_connect_detour(&attempt, START + 3999);
	assert_null(attempt.relay);
	mesh_connect_detour(&attempt, START + 4000);
	assert_non_null(attempt.relay);
	assert_false(mesh_dead_routes_have(&attempt, MESH_DEAD_ROUTED));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, attempt_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waits),
		TEST(test_no_rdma_here),
		TEST(test_no_rdma_there),
		TEST(test_no_relays),
		TEST(test_routed_rdma),
		TEST(test_cable),
		TEST(test_later_rdma),
		TEST(test_earlier_rdma),
		TEST(test_dead_rdma),
		TEST(test_slow_rdma),
		TEST(test_away_rdma),
		TEST(test_refused),
		TEST(test_not_dead),
		TEST(test_unanswered),
		TEST(test_dead_left),
		TEST(test_dead),
		TEST(test_short_timeout),
		TEST(test_short_unanswered),
		TEST(test_stays_dead),
		TEST(test_dead_no_longer),
		TEST(test_left),
		TEST(test_unknown_nics),
		TEST(test_learning),
		TEST(test_unknown_nics_dead),
		TEST(test_unknown_nics_cable),
		TEST(test_waited_for_once),
		TEST(test_short_after_others),
		TEST(test_unanswered_again),
		TEST(test_not_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
