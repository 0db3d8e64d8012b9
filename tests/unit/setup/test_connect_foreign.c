/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_foreign.c - how long a listener of another protocol version is dialled. */
#include <errno.h>

#include "setup/connect_foreign.h"

#include "dial_fixture.h"

/* Of the other node; this one has a single NIC, so each is dialled by itself. */
#define NICS 3
/* When the attempt ends, in milliseconds of the clock. */
#define DEADLINE (START + 60000)

static struct mesh_peer peers[NICS];

static int setup(void)
{
	int i;

	dial_begin(1, NICS);
	attempt.deadline_ms = DEADLINE;
	attempt.handle.foreign = true;
	for (i = 0; i < NICS; i++) {
		dial_peer_add(&peers[i], &domains[0], i);
		peers[i].state = MESH_PEER_CONNECTING;
	}
	return 0;
}

TESTS_USE(setup, dial_end);

static void candidates(int num)
{
	int i;

	for (i = 0; i < num; i++)
		candidate_add(0, i);
}

static bool over(uint64_t after_ms)
{
	int ret = mesh_connect_foreign_advance(&attempt, START + after_ms);

	assert_true(!ret || ret == -EPROTONOSUPPORT);
	return ret;
}

/* Nobody answers: the only candidate has 5 s. */
TEST(alone)
{
	candidates(1);
	assert_false(over(0));
	assert_dials_only(&peers[0]);
	assert_false(over(4999));
	assert_true(over(5000));
}

/* The connection's own deadline is nearer. */
TEST(deadline)
{
	attempt.deadline_ms = START + 2000;
	candidates(1);
	assert_false(over(0));
	assert_false(over(1999));
	assert_true(over(2000));
}

/* A cable that is dead leaves time for the others, each of which is dialled once. */
TEST(one_after_the_other)
{
	candidates(3);
	assert_false(over(0));
	assert_dials_only(&peers[0]);
	assert_false(over(3000));
	assert_dials_only(&peers[0]);
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	assert_false(over(6002));
	assert_dials_only(&peers[2]);
	assert_false(over(11001));
	assert_dials_only(&peers[2]);
	assert_true(over(11002));
}

TEST(deadline_among_others)
{
	attempt.deadline_ms = START + 4000;
	candidates(3);
	assert_false(over(0));
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	assert_true(over(4000));
}

/* The listener on the second one is told. */
TEST(second_answers)
{
	candidates(2);
	assert_false(over(0));
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	peers[1].sent_cookie = COOKIE;
	peers[1].refusal = MESH_REFUSAL_VERSION;
	assert_true(over(3002));
}

/* What opening the NIC takes does not count as dialling. */
TEST(slow_nic)
{
	candidates(1);
	nic_opened(0, false);
	assert_false(over(0));
	assert_false(over(8000));
	nic_opened(0, true);
	assert_false(over(8001));
	assert_dials_only(&peers[0]);
	assert_false(over(13000));
	assert_true(over(13001));
}

TEST(nic_does_not_open)
{
	candidates(1);
	nic_opened(0, false);
	assert_false(over(9999));
	assert_true(over(10000));
}
