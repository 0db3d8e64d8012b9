/* SPDX-License-Identifier: Apache-2.0 */
/* test_send_queue.c - large messages that are sent while those before them wait. */
#include <stdlib.h>

#include "comm_fixture.h"
#include "fake_clock.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SMALL ((size_t)64)
#define LARGE (64 * KIB)

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

/* On tcp each poll lets some more be copied. */
static void polls(int count)
{
	for (; count; count--)
		mesh_domain_poll(fixture.domains[0]);
}

/* What is posted behind a message that waits is not tried before that one goes on. */
TEST(behind_one_that_waits)
{
	uint64_t looks;
	int i;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, 2 * MIB);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 8, 8 * MIB);
	polls(4);
	assert_int_equal(fake.writes.num, 2); /* the second one waits for room */
	looks = fake_clock_us;
	for (i = 0; i < 6; i++)
		fixture_post(comm, LARGE);
	assert_int_equal(fake_clock_us, looks);
	fake.writes_end_with = -1;
	fixture_writes_complete(2);
	polls(4);
	assert_int_equal(fake.writes.num, 2 + 7);
	for (i = 0; i < 7; i++)
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[2 + i].data).seq, 1 + i);
	fixture_comm_close(comm);
}

/* After small messages it requests its grant at once, also behind one that waits. */
TEST(want_behind_one_that_waits)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1); /* that one was for all */
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 2);
	fake.writes_end_with = -1;
	fixture_grant(comm, 1, 4, LARGE);
	fixture_poll();
	assert_int_equal(fake.writes.num, 3);
	fixture_comm_close(comm);
}
