/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_carrier.c - candidates whose NIC is open and has lost its carrier. */
#include <errno.h>
#include <stdlib.h>

#include "setup/carriers.h"
#include "setup/connect_judge.h"
#include "setup/relay_try.h"

#include "dial_fixture.h"

/* Each NIC of ours leads to one of the other node's. */
#define NICS 2

static struct mesh_peer peers[NICS];

/* As the kernel says it; the plugin learns it when it looks. */
static void carrier(int i, bool up)
{
	strcpy(nics[i].netdev, up ? "lo" : "no-such-nic");
}

static int setup(void **state)
{
	int i;

	(void)state;
	dial_begin(NICS, NICS);
	process->num_devs = process->num_lasting = process->num_nics = NICS;
	for (i = 0; i < NICS; i++) {
		process->providers[i] = MESH_PROVIDER_TCP;
		dial_peer_add(&peers[i], &domains[i], i);
		candidate_add(i, i)->provider = MESH_PROVIDER_TCP;
	}
	return 0;
}

static void tries_only(int i)
{
	assert_dials_only(&peers[i]);
	assert_int_equal(attempt.choice.num_candidates, NICS);
}

static enum mesh_verdict verdict(uint64_t after_ms)
{
	return mesh_connect_judge(&attempt, START + after_ms);
}

/* The other one is tried alone, and the first one has its turn once its carrier is back. */
static void test_other_is_tried(void **state)
{
	(void)state;
	carrier(0, false);
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	tries_only(1);
	assert_false(attempt.away);
	assert_int_equal(verdict(4000), MESH_VERDICT_WAIT);
	carrier(0, true);
	mesh_carriers_check(process);
	assert_int_equal(verdict(4000), MESH_VERDICT_NEXT);
	assert_int_equal(mesh_connect_try_next(&attempt, START + 4000), 0);
	assert_int_equal(attempt.num_peers, 2);
}

/* Relays are asked then: -ENOLINK. */
static void test_none_has_a_carrier(void **state)
{
	(void)state;
	carrier(0, false);
	carrier(1, false);
	assert_int_equal(mesh_connect_try_start(&attempt, START), -ENOLINK);
	assert_true(attempt.away);
	assert_int_equal(attempt.choice.num_candidates, NICS);
	carrier(1, true);
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	tries_only(1);
	assert_false(attempt.away);
}

/* The try ends soon, whatever is known of the peer; one that is up keeps its path. */
static void test_lost_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	assert_int_equal(attempt.num_peers, 2);
	carrier(0, false);
	assert_int_equal(verdict(1000), MESH_VERDICT_WAIT);
	mesh_carriers_check(process);
	assert_int_equal(verdict(500), MESH_VERDICT_WAIT);
	assert_int_equal(verdict(501), MESH_VERDICT_NEXT);
	peers[1].state = MESH_PEER_UP;
	assert_int_equal(verdict(501), MESH_VERDICT_READY);
	peers[1].state = MESH_PEER_RETRY;
	assert_int_equal(mesh_connect_try_next(&attempt, START + 501), 0);
	tries_only(1);
}

/* The comm gets the path when the cable is back. */
static void test_missed(void **state)
{
	int i;

	(void)state;
	carrier(0, false);
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	peers[1].state = MESH_PEER_UP;
	for (i = 0; i < 2; i++) { /* twice where there are lanes */
		mesh_connect_try_settle(&attempt);
		tries_only(1);
		assert_int_equal(attempt.num_missed, 1);
		assert_int_equal(attempt.missed[0].local, 0);
	}
	mesh_connect_try_end(&attempt);
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	attempt.choice.candidates[0].class = MESH_PATH_FAR;
	mesh_connect_try_settle(&attempt);
	assert_int_equal(attempt.num_missed, 0);
}

/* It is lost when the other one has not come up: it counts once. */
static void test_missed_once(void **state)
{
	(void)state;
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	peers[1].state = MESH_PEER_UP;
	carrier(0, false);
	mesh_carriers_check(process);
	mesh_connect_try_settle(&attempt);
	tries_only(1);
	assert_int_equal(attempt.num_missed, 1);
}

/* Two ranks of one node reach each other over addresses whose cable is out. */
static void test_same_node(void **state)
{
	(void)state;
	attempt.handle.node_id = process->node_id;
	carrier(0, false);
	assert_int_equal(mesh_connect_try_start(&attempt, START), 0);
	tries_only(0);
	mesh_carriers_check(process);
	assert_int_equal(verdict(501), MESH_VERDICT_WAIT);
}

/* Routes had let nothing through before: nothing of the relays that took their place stays. */
static void test_back_after_a_detour(void **state)
{
	(void)state;
	carrier(0, false);
	carrier(1, false);
	attempt.relay = calloc(1, sizeof(*attempt.relay));
	assert_non_null(attempt.relay);
	attempt.relay->process = process;
	attempt.detoured = true;
	assert_int_equal(mesh_connect_try_start(&attempt, START), -ENOLINK);
	assert_false(mesh_connect_try_away(&attempt, START));
	assert_non_null(attempt.relay);
	carrier(0, true);
	assert_true(mesh_connect_try_away(&attempt, START));
	assert_null(attempt.relay);
	assert_false(attempt.detoured);
	tries_only(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, dial_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_other_is_tried),	TEST(test_none_has_a_carrier),
		TEST(test_lost_meanwhile),	TEST(test_missed),
		TEST(test_missed_once),		TEST(test_same_node),
		TEST(test_back_after_a_detour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
