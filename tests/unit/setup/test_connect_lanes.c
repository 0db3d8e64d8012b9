/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_lanes.c - how many connections a line gets, and what becomes of them. */
#include "base/clock.h"
#include "setup/connect_lanes.h"

#include "dial_fixture.h"

#define NICS 2

/* All lanes of each NIC, and a peer for each lane between NICs of one number. */
static struct mesh_domain lane_domains[NICS][MESH_LANES_MAX];
static struct mesh_peer peers[NICS][MESH_LANES_MAX];

static void lane_make(int nic, int lane)
{
	struct mesh_domain *domain = &lane_domains[nic][lane];
	int index = mesh_process_lane_index(process, nic, MESH_PROVIDER_TCP, lane);

	*domain = (struct mesh_domain){
		.nic = &nics[nic],
		.dev = nic,
		.lane = lane,
		.provider = MESH_PROVIDER_TCP,
	};
	process->domains[index] = domain;
	process->dev_states[index] = MESH_DEV_OPEN;
	dial_peer_add(&peers[nic][lane], domain, nic);
	peers[nic][lane].routed = true;
}

static int setup(void **state)
{
	int i, lane;

	(void)state;
	dial_begin(NICS, NICS);
	process->config.lanes = 3;
	for (i = 0; i < NICS; i++) {
		process->providers[i] = MESH_PROVIDER_TCP;
		for (lane = 0; lane < MESH_LANES_MAX; lane++)
			lane_make(i, lane);
	}
	return 0;
}

/* Starts a try of the pairs 0-0, 1-1, which are up at once. */
static void start(int num, enum mesh_path_class class, enum mesh_provider_id provider)
{
	struct mesh_path_candidate *candidate;
	int i;

	for (i = 0; i < num; i++) {
		candidate = candidate_add(i, i);
		candidate->provider = provider;
		candidate->class = class;
	}
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	for (i = 0; i < num; i++) {
		attempt.peers[i]->routed = mesh_path_class_is_routed(class);
		attempt.peers[i]->state = MESH_PEER_UP;
	}
}

static void start_line(int num)
{
	start(num, MESH_PATH_ROUTED, MESH_PROVIDER_TCP);
}

static enum mesh_verdict judge(uint64_t after_ms)
{
	return mesh_connect_lanes_judge(&attempt, START + after_ms);
}

/* ---- how many ------------------------------------------------------------------------------ */

static void test_count(void **state)
{
	(void)state;
	/* 10 Gbit/s over 20 ms: 25 MB. */
	assert_int_equal(mesh_lanes_count(20000000, 10000, 25000000), 1);
	assert_int_equal(mesh_lanes_count(20000000, 10000, 24999999), 2);
	assert_int_equal(mesh_lanes_count(20000000, 10000, 5000000), 5);
	assert_int_equal(mesh_lanes_count(20000000, 10000, 1000000), MESH_LANES_MAX);
	assert_int_equal(mesh_lanes_count(UINT64_MAX / 2, 400000, 1), MESH_LANES_MAX);
	/* A cable whose other end is busy. */
	assert_int_equal(mesh_lanes_count(999999, 400000, 1000000), 1);
	/* Nothing is known of the round trip, the window, the speed. */
	assert_int_equal(mesh_lanes_count(0, 10000, 1000000), 1);
	assert_int_equal(mesh_lanes_count(20000000, 10000, 0), 1);
	assert_int_equal(mesh_lanes_count(20000000, 0, 5000000), 5);
}

/* Each domain has an index of its own, which shows its NIC and its lane. */
static void test_indices(void **state)
{
	bool used[MESH_DOMAINS_MAX] = {false};
	int dev, lane, index;

	(void)state;
	for (dev = 0; dev < MESH_NICS_MAX; dev++) {
		process->providers[dev] = MESH_PROVIDER_TCP;
		used[mesh_second_domain(dev)] = true;
		for (lane = 0; lane < MESH_LANES_MAX; lane++) {
			index = mesh_process_lane_index(process, dev, MESH_PROVIDER_TCP, lane);
			assert_in_range(index, 0, MESH_DOMAINS_MAX - 1);
			assert_false(used[index]);
			used[index] = true;
			assert_int_equal(index % MESH_NICS_MAX, dev);
			assert_int_equal(mesh_domain_lane(index), lane);
		}
	}
	process->providers[0] = MESH_PROVIDER_VERBS_RXM;
	assert_int_equal(mesh_process_lane_index(process, 0, MESH_PROVIDER_VERBS_RXM, 1), -1);
	assert_int_equal(mesh_process_lane_index(process, 0, MESH_PROVIDER_TCP, 1), -1);
	process->also_tcp[0] = true;
	assert_int_equal(
		mesh_domain_lane(mesh_process_lane_index(process, 0, MESH_PROVIDER_TCP, 1)), 1);
}

/* ---- who gets some ------------------------------------------------------------------------- */

static void test_lanes_follow(void **state)
{
	(void)state;
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_peers, 3);
	assert_ptr_equal(attempt.peers[1], &peers[0][1]);
	assert_ptr_equal(attempt.peers[2], &peers[0][2]);
	peers[0][1].state = MESH_PEER_UP;
	assert_int_equal(judge(20), MESH_VERDICT_WAIT);
	peers[0][2].state = MESH_PEER_UP;
	assert_int_equal(judge(30), MESH_VERDICT_READY);
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 3);
}

/* All pairs have as many, so that none of them counts for more; and there is room for them. */
static void test_pairs_share(void **state)
{
	(void)state;
	process->config.lanes = 8;
	start_line(2);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_peers, 8);
	assert_int_equal(peers[0][3].users, 1);
	assert_int_equal(peers[1][3].users, 1);
	assert_int_equal(peers[0][4].users, 0);
}

static void test_no_room(void **state)
{
	(void)state;
	process->config.max_paths = 3;
	start_line(2);
	assert_int_equal(judge(10), MESH_VERDICT_READY);
	assert_int_equal(attempt.num_peers, 2);
}

static void test_cable(void **state)
{
	(void)state;
	strcpy(process->config.site, "east");
	strcpy(peers[0][0].site, "east");
	start(1, MESH_PATH_DIRECT, MESH_PROVIDER_TCP);
	assert_int_equal(judge(10), MESH_VERDICT_READY);
	assert_int_equal(attempt.num_peers, 1);
}

/* A subnet that reaches from one site to the other, too. */
static void test_other_site(void **state)
{
	(void)state;
	strcpy(process->config.site, "east");
	strcpy(peers[0][0].site, "west");
	start(1, MESH_PATH_DIRECT, MESH_PROVIDER_TCP);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_peers, 3);
	/* A lane that is left out is no cable that was missing. */
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 1);
	assert_int_equal(attempt.num_missed, 0);
}

/* A cable that is away now may join the comm later. */
static void test_room_for_missed(void **state)
{
	(void)state;
	process->config.lanes = 8;
	strcpy(process->config.site, "east");
	strcpy(peers[0][0].site, "west");
	start(2, MESH_PATH_DIRECT, MESH_PROVIDER_TCP);
	peers[1][0].state = MESH_PEER_CONNECTING;
	mesh_addr_parse("10.1.1.2", &peers[1][0].address.addr);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(judge(3011), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_missed, 1);
	assert_int_equal(attempt.num_peers, 4);
}

/* A site's name counts as far as it travels. */
static void test_long_site(void **state)
{
	(void)state;
	strcpy(process->config.site, "a-very-long-name-1");
	strcpy(peers[0][0].site, "a-very-long-nam");
	start(1, MESH_PATH_DIRECT, MESH_PROVIDER_TCP);
	assert_int_equal(judge(10), MESH_VERDICT_READY);
}

static void test_rdma(void **state)
{
	(void)state;
	process->providers[0] = MESH_PROVIDER_VERBS_RXM;
	process->also_tcp[0] = true;
	start(1, MESH_PATH_ROUTED, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(judge(10), MESH_VERDICT_READY);
	assert_int_equal(attempt.num_peers, 1);
}

/* ---- those that fail ----------------------------------------------------------------------- */

static void test_lane_is_silent(void **state)
{
	(void)state;
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	peers[0][1].state = MESH_PEER_UP;
	assert_int_equal(judge(20), MESH_VERDICT_WAIT);
	assert_int_equal(judge(3019), MESH_VERDICT_WAIT);
	assert_int_equal(judge(3021), MESH_VERDICT_READY);
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 2);
}

/* One that is over would begin the next try of candidates, and lose those that are up. */
static void test_lane_is_lost(void **state)
{
	(void)state;
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	peers[0][1].state = MESH_PEER_LOST;
	assert_int_equal(judge(511), MESH_VERDICT_READY);
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 1);
}

/* Where nothing is up any more, the candidates are tried as usual, and get lanes again. */
static void test_line_is_lost(void **state)
{
	(void)state;
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	peers[0][0].state = MESH_PEER_RETRY;
	peers[0][1].state = peers[0][2].state = MESH_PEER_LOST;
	assert_int_equal(judge(511), MESH_VERDICT_NEXT);
	assert_int_equal(mesh_connect_try_next(&attempt, START + 511), 0);
	assert_int_equal(attempt.num_peers, 1);
	assert_false(attempt.lanes || attempt.lanes_begun);
}

/* Its end has no port for it. */
static void test_lane_is_refused(void **state)
{
	(void)state;
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	peers[0][1].state = MESH_PEER_UP;
	peers[0][2].state = MESH_PEER_RETRY;
	peers[0][2].refusal = MESH_REFUSAL_RESOURCES;
	assert_int_equal(judge(20), MESH_VERDICT_READY);
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_peers, 2);
}

/* No lane takes the last port from one with a lower number, which the other end may have. */
static void test_one_after_the_other(void **state)
{
	int first = mesh_process_lane_index(process, 0, MESH_PROVIDER_TCP, 1);
	int second = mesh_process_lane_index(process, 0, MESH_PROVIDER_TCP, 2);

	(void)state;
	process->domains[first] = process->domains[second] = NULL;
	process->dev_states[first] = MESH_DEV_OPENING;
	process->dev_states[second] = MESH_DEV_CLOSED;
	process->opening_ms[first] = mesh_clock_ms();
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(process->dev_states[second], MESH_DEV_CLOSED);
	process->dev_states[first] = MESH_DEV_FAILED;
	assert_int_equal(judge(20), MESH_VERDICT_WAIT);
	assert_int_equal(process->dev_states[second], MESH_DEV_CLOSED);
	assert_int_equal(judge(30), MESH_VERDICT_READY);
	assert_int_equal(attempt.num_peers, 1);
}

/* The domain of a lane could not be opened. */
static void test_lane_is_closed(void **state)
{
	int index = mesh_process_lane_index(process, 0, MESH_PROVIDER_TCP, 1);

	(void)state;
	process->domains[index] = NULL;
	process->dev_states[index] = MESH_DEV_OPENING;
	process->opening_ms[index] = mesh_clock_ms();
	start_line(1);
	assert_int_equal(judge(10), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_peers, 1);
	process->dev_states[index] = MESH_DEV_FAILED;
	assert_int_equal(judge(20), MESH_VERDICT_WAIT);
	assert_int_equal(attempt.num_peers, 2);
	assert_ptr_equal(attempt.peers[1], &peers[0][2]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, dial_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		TEST(test_indices),
		TEST(test_lanes_follow),
		TEST(test_pairs_share),
		TEST(test_no_room),
		TEST(test_cable),
		TEST(test_other_site),
		TEST(test_long_site),
		TEST(test_rdma),
		TEST(test_lane_is_silent),
		TEST(test_lane_is_lost),
		TEST(test_line_is_lost),
		TEST(test_lane_is_closed),
		TEST(test_lane_is_refused),
		TEST(test_one_after_the_other),
		TEST(test_room_for_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
