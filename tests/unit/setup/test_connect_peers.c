/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_peers.c - which peers a connection tries together, how long, and which it keeps. */
#include "setup/connect_judge.h"

#include "dial_fixture.h"

#define NICS 3

/* Of all pairs of our NICs and the other node's: peers[here][there]. */
static struct mesh_peer peers[NICS][NICS];

static int setup(void **state)
{
	int here, there;

	(void)state;
	dial_begin(NICS, NICS);
	for (here = 0; here < NICS; here++) {
		for (there = 0; there < NICS; there++)
			dial_peer_add(&peers[here][there], &domains[here], there);
	}
	return 0;
}

static void start(void)
{
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
}

/* Starts a try of the pairs 0-0, 1-1 and so on. */
static void start_pairs(int num)
{
	int i;

	for (i = 0; i < num; i++)
		candidate_add(i, i);
	start();
	assert_int_equal(attempt.num_peers, num);
}

static void tried(int i, int here, int there)
{
	assert_true(i < attempt.num_peers);
	assert_ptr_equal(attempt.peers[i], &peers[here][there]);
}

static bool ready(uint64_t after_ms)
{
	return mesh_connect_judge(&attempt, START + after_ms) == MESH_VERDICT_READY;
}

static bool spent(uint64_t after_ms)
{
	return mesh_connect_judge(&attempt, START + after_ms) == MESH_VERDICT_NEXT;
}

static bool refused(uint64_t after_ms)
{
	return mesh_connect_judge(&attempt, START + after_ms) == MESH_VERDICT_REFUSED;
}

/* ---- who is tried -------------------------------------------------------------------------- */

/* Pairs that have no NIC in common; the next try begins with the first that was left out. */
static void test_pairs_apart(void **state)
{
	(void)state;
	candidate_add(0, 0);
	candidate_add(0, 1);
	candidate_add(2, 1);
	candidate_add(1, 0);
	start();
	assert_int_equal(attempt.num_peers, 2);
	tried(0, 0, 0);
	tried(1, 2, 1);
	assert_int_equal(peers[0][0].users, 1);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	assert_int_equal(peers[0][0].users, 0);
	assert_int_equal(attempt.num_peers, 2);
	tried(0, 0, 1);
	tried(1, 1, 0);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	tried(0, 2, 1);
	tried(1, 1, 0);
}

static void test_no_more_than_allowed(void **state)
{
	(void)state;
	process->config.max_paths = 2;
	candidate_add(0, 0);
	candidate_add(1, 1);
	candidate_add(2, 2);
	start();
	assert_int_equal(attempt.num_peers, 2);
	/* A peer that is not up yet gets our cookie: its listener may have changed. */
	assert_int_equal(peers[0][0].cookie, COOKIE);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	tried(0, 2, 2);
	tried(1, 0, 0);
	/* Between two ranks of one node every path is the same memory. */
	attempt.handle.node_id = process->node_id;
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	assert_int_equal(attempt.num_peers, 1);
}

/* A NIC that is slow to open waits until it is open, and then takes its turn. */
static void test_slow_nic_comes_later(void **state)
{
	(void)state;
	nic_opened(0, false);
	candidate_add(0, 0);
	candidate_add(1, 1);
	candidate_add(2, 1);
	start();
	assert_int_equal(attempt.num_peers, 1);
	tried(0, 1, 1);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	tried(0, 2, 1);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	tried(0, 1, 1);
	nic_opened(0, true);
	assert_true(spent(3001));
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	tried(0, 2, 1);
	tried(1, 0, 0);
	assert_int_equal(attempt.unopened, 0);
}

/* Nobody is left for a NIC that is slow to open, but one that cannot become a path. */
static void test_slow_nic_is_no_rival(void **state)
{
	(void)state;
	nic_opened(0, false);
	candidate_add(0, 0);
	candidate_add(1, 1);
	start();
	assert_false(spent(3001));
	peers[1][1].refusal = MESH_REFUSAL_COOKIE;
	peers[1][1].sent_cookie = COOKIE;
	assert_true(refused(3001));
	peers[1][1].refusal = MESH_REFUSAL_ROUTE;
	assert_true(spent(3001));
}

/* ---- until when it waits ------------------------------------------------------------------- */

static void test_ready_when_all_are_up(void **state)
{
	(void)state;
	start_pairs(2);
	assert_false(ready(10));
	peers[0][0].state = MESH_PEER_UP;
	assert_false(ready(20));
	peers[1][1].state = MESH_PEER_UP;
	assert_true(ready(30));
}

/* The others have some time once the first is up, each by what is known of it. */
static void test_ready_without_the_others(void **state)
{
	static const struct {
		enum mesh_peer_state state;
		const char *address;
		bool refuses;
		uint64_t wait_ms;
	} cases[] = {
		{MESH_PEER_GREETING, "10.0.0.2", false, 3000},
		{MESH_PEER_CONNECTING, "10.0.0.2", false, 3000},
		{MESH_PEER_RETRY, "10.0.0.2", false, 500},
		{MESH_PEER_CONNECTING, "fe80::2", false, 500},
		{MESH_PEER_RETRY, "fe80::2", false, 500},
		{MESH_PEER_GREETING, "fe80::2", false, 3000}, /* it has answered */
		{MESH_PEER_LOST, "10.0.0.2", false, 0},
		{MESH_PEER_RETRY, "10.0.0.2", true, 0},
	};
	struct mesh_peer *other = &peers[1][1];
	size_t i;

	(void)state;
	start_pairs(2);
	peers[0][0].state = MESH_PEER_UP;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		other->state = cases[i].state;
		other->refusal = cases[i].refuses ? MESH_REFUSAL_PROVIDER : 0;
		mesh_addr_parse(cases[i].address, &other->address.addr);
		attempt.up_ms = 0;
		assert_int_equal(ready(1000), !cases[i].wait_ms);
		if (!cases[i].wait_ms)
			continue;
		assert_false(ready(1000 + cases[i].wait_ms - 1));
		assert_true(ready(1000 + cases[i].wait_ms));
	}
	/* There has been no answer for long. */
	other->state = MESH_PEER_CONNECTING;
	other->refusal = 0;
	mesh_addr_parse("10.0.0.2", &other->address.addr);
	attempt.up_ms = 0;
	other->silent_ms = START + 1;
	assert_false(ready(3000));
	other->silent_ms = START;
	assert_true(ready(3000));
}

/* The one that was up is lost during the wait for the other: the wait starts again. */
static void test_lost_again(void **state)
{
	(void)state;
	start_pairs(2);
	peers[0][0].state = MESH_PEER_UP;
	assert_false(ready(1000));
	peers[0][0].state = MESH_PEER_LOST;
	assert_false(ready(3900));
	peers[1][1].state = MESH_PEER_RETRY;
	assert_false(ready(5000));
	assert_int_equal(attempt.up_ms, 0);
	peers[1][1].state = MESH_PEER_UP;
	assert_true(ready(6000));
}

/* ---- who is kept --------------------------------------------------------------------------- */

static void speeds(int i, int local, int remote)
{
	nics[i].speed_mbps = local;
	peers[i][i].speed_mbps = remote;
	peers[i][i].state = MESH_PEER_UP;
}

static void test_settle(void **state)
{
	static const struct {
		int local, remote;
		bool kept;
	} cases[] = {
		{100000, 100000, true}, {12500, 100000, true}, {12499, 100000, false},
		{100000, 12499, false}, {0, 12499, false}, /* one end knows */
		{12499, 0, false},	{0, 0, true},	   /* unknown */
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attempt.choice.num_candidates = 0;
		start_pairs(3);
		speeds(0, 400000, 100000); /* the slower end counts */
		speeds(1, cases[i].local, cases[i].remote);
		peers[2][2].state = MESH_PEER_GREETING;
		mesh_connect_try_settle(&attempt);
		assert_int_equal(attempt.num_peers, cases[i].kept ? 2 : 1);
		tried(0, 0, 0);
		assert_int_equal(peers[2][2].users, 0);
		mesh_connect_try_end(&attempt);
	}
}

/* Which of those that are not up the comm may get later. */
static void test_missed(void **state)
{
	static const struct {
		enum mesh_provider_id provider;
		enum mesh_path_class class;
		enum mesh_refusal refusal;
		bool link_local, missed;
	} cases[] = {
		{MESH_PROVIDER_TCP, MESH_PATH_DIRECT, 0, false, true},
		{MESH_PROVIDER_TCP, MESH_PATH_DIRECT, 0, true, false},
		{MESH_PROVIDER_TCP, MESH_PATH_DIRECT, MESH_REFUSAL_ROUTE, false, false},
		{MESH_PROVIDER_TCP, MESH_PATH_ROUTED, 0, false, false},
		{MESH_PROVIDER_VERBS_RXM, MESH_PATH_DIRECT, 0, false, false},
	};
	struct mesh_addr usual = peers[1][1].address.addr;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attempt.choice.num_candidates = 0;
		start_pairs(2);
		speeds(0, 100000, 100000);
		attempt.pairs[1].provider = cases[i].provider;
		attempt.pairs[1].class = cases[i].class;
		peers[1][1].refusal = cases[i].refusal;
		if (cases[i].link_local)
			mesh_addr_parse("fe80::1", &peers[1][1].address.addr);
		mesh_connect_try_settle(&attempt);
		assert_int_equal(attempt.num_missed, cases[i].missed);
		peers[1][1].address.addr = usual;
		peers[1][1].refusal = 0;
		mesh_connect_try_end(&attempt);
	}
}

/* ---- when it is over ------------------------------------------------------------------------ */

static void test_spent(void **state)
{
	(void)state;
	candidate_add(0, 0);
	candidate_add(1, 1);
	candidate_add(0, 1); /* left for the next try */
	start();
	assert_int_equal(attempt.num_peers, 2);
	assert_false(spent(3000));
	assert_true(spent(3001));
	peers[0][0].state = MESH_PEER_RETRY;
	assert_false(spent(3000)); /* the other may come */
	peers[1][1].state = MESH_PEER_RETRY;
	assert_false(spent(500));
	assert_true(spent(501));
	/* One that is over, and may come back as another peer: whatever the other does. */
	peers[1][1].state = MESH_PEER_GREETING;
	peers[0][0].state = MESH_PEER_LOST;
	assert_false(spent(500));
	assert_true(spent(501));
	/* A refusal of another connection's cookie does not apply to ours. */
	peers[0][0].state = MESH_PEER_RETRY;
	peers[0][0].refusal = MESH_REFUSAL_COOKIE;
	peers[0][0].sent_cookie = COOKIE + 1;
	assert_true(spent(501));
	peers[0][0].sent_cookie = COOKIE;
	assert_false(spent(501));
}

/* One came up late: the other one still has its time, and the try is not given up. */
static void test_up_late(void **state)
{
	(void)state;
	candidate_add(0, 0);
	candidate_add(1, 1);
	candidate_add(0, 1); /* left for the next try */
	start();
	peers[0][0].state = MESH_PEER_UP;
	assert_false(ready(2900));
	assert_false(spent(3100));
	assert_false(ready(5899));
	assert_false(spent(5899));
	assert_true(ready(5900));
}

/* With no others to try, more time is the only thing that may help. */
static void test_never_spent_without_others(void **state)
{
	(void)state;
	start_pairs(2);
	peers[0][0].state = MESH_PEER_RETRY;
	assert_false(spent(30000));
	peers[0][0].state = peers[1][1].state = MESH_PEER_LOST;
	assert_false(spent(500));
	assert_true(spent(501));
}

static void refuse(int i, enum mesh_refusal refusal)
{
	peers[i][i].state = MESH_PEER_RETRY;
	peers[i][i].refusal = refusal;
	peers[i][i].sent_cookie = COOKIE;
}

/* The peer's addresses, except those that do not answer. */
static void test_refused_in_words(void **state)
{
	(void)state;
	start_pairs(2);
	refuse(0, MESH_REFUSAL_VERSION);
	assert_false(refused(10));
	peers[1][1].silent_ms = START;
	assert_false(refused(2999));
	assert_true(refused(3000));
	peers[1][1].silent_ms = 0;
	refuse(1, MESH_REFUSAL_COOKIE);
	assert_true(refused(10));
	peers[1][1].sent_cookie = COOKIE + 1;
	assert_false(refused(10));
	/* Silence alone is no refusal. */
	peers[0][0].refusal = peers[1][1].refusal = 0;
	peers[0][0].silent_ms = peers[1][1].silent_ms = START;
	assert_false(refused(3000));
}

/* The kernel refuses for three seconds: the process has ended, and was not just starting. */
static void test_refused_by_the_kernel(void **state)
{
	(void)state;
	start_pairs(2);
	peers[0][0].first_refused_ms = START + 10;
	assert_false(refused(9000));
	peers[1][1].first_refused_ms = START + 500;
	assert_false(refused(3500));
	assert_true(refused(3501));
	peers[0][0].first_refused_ms = 0;
	assert_false(refused(3501));
}

/* Candidates outside this try are tried first; the time of refusals continues. */
static void test_refused_with_others_left(void **state)
{
	(void)state;
	candidate_add(0, 0);
	candidate_add(0, 1);
	start();
	peers[0][0].first_refused_ms = START + 10;
	refuse(0, MESH_REFUSAL_VERSION);
	assert_false(refused(3000));
	assert_true(refused(3001));
	peers[0][0].refusal = 0;
	assert_int_equal(mesh_connect_try_next(&attempt, START + 300), 0);
	tried(0, 0, 1);
	peers[0][1].first_refused_ms = START + 400;
	assert_false(refused(3010));
	assert_true(refused(3011)); /* since the first of them refused */
	assert_int_equal(mesh_connect_try_next(&attempt, START + 600), 0);
	assert_true(refused(3011));
	/* One that does not refuse restarts it. */
	peers[0][0].first_refused_ms = 0;
	assert_false(refused(9000));
	assert_int_equal(mesh_connect_try_next(&attempt, START + 9000), 0);
	peers[0][0].first_refused_ms = START + 9100;
	peers[0][1].first_refused_ms = START + 9200;
	assert_false(refused(12200));
	assert_true(refused(12201));
}

/* ---- routed paths -------------------------------------------------------------------------- */

static void routed_candidate(int here, int there)
{
	candidate_add(here, there)->class = MESH_PATH_ROUTED;
}

/* Direct and routed paths take turns, and are never in one try. */
static void test_kinds_apart(void **state)
{
	(void)state;
	candidate_add(0, 0);
	routed_candidate(1, 1);
	routed_candidate(2, 2);
	start();
	assert_int_equal(attempt.num_peers, 1);
	tried(0, 0, 0);
	assert_false(peers[0][0].routed);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	assert_int_equal(attempt.num_peers, 2);
	tried(0, 1, 1);
	tried(1, 2, 2);
	assert_true(peers[1][1].routed && peers[2][2].routed);
	assert_int_equal(mesh_connect_try_next(&attempt, START), 0);
	assert_int_equal(attempt.num_peers, 1);
	tried(0, 0, 0);
}

static void route_refuse(struct mesh_peer *peer)
{
	peer->refusal = MESH_REFUSAL_ROUTE;
	peer->state = MESH_PEER_RETRY;
}

/* Where the answers would come another way, the next pair follows at once. */
static void test_dead_end(void **state)
{
	(void)state;
	routed_candidate(0, 0);
	routed_candidate(0, 1);
	start();
	route_refuse(&peers[0][0]);
	assert_false(refused(4000));
	assert_true(spent(1));
	assert_int_equal(mesh_connect_try_next(&attempt, START + 1), 0);
	assert_int_equal(attempt.choice.num_candidates, 1);
	assert_int_equal(attempt.num_peers, 1);
	tried(0, 0, 1);
	/* The last one ends the attempt. */
	assert_false(refused(5));
	route_refuse(&peers[0][1]);
	assert_true(refused(5));
}

/* More NICs became known: the peers that are in both tries stay, with one user each. */
static void test_again(void **state)
{
	(void)state;
	start_pairs(2);
	peers[0][0].state = MESH_PEER_UP;
	attempt.choice.num_candidates = 0;
	candidate_add(0, 0);
	candidate_add(2, 2);
	assert_int_equal(mesh_connect_try_again(&attempt, START + 10), 0);
	assert_int_equal(attempt.num_peers, 2);
	tried(0, 0, 0);
	tried(1, 2, 2);
	assert_int_equal(peers[0][0].users, 1);
	assert_int_equal(peers[1][1].users, 0);
	assert_int_equal(peers[2][2].users, 1);
	assert_int_equal(peers[0][0].state, MESH_PEER_UP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, dial_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pairs_apart),
		TEST(test_no_more_than_allowed),
		TEST(test_slow_nic_comes_later),
		TEST(test_slow_nic_is_no_rival),
		TEST(test_ready_when_all_are_up),
		TEST(test_ready_without_the_others),
		TEST(test_lost_again),
		TEST(test_settle),
		TEST(test_missed),
		TEST(test_spent),
		TEST(test_up_late),
		TEST(test_never_spent_without_others),
		TEST(test_refused_in_words),
		TEST(test_refused_by_the_kernel),
		TEST(test_refused_with_others_left),
		TEST(test_kinds_apart),
		TEST(test_dead_end),
		TEST(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
