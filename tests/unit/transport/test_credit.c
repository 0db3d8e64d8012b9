/* SPDX-License-Identifier: Apache-2.0 */
/* test_credit.c - what a sending comm may send: small messages ahead, large ones by grants. */
#include <rdma/fi_errno.h>

#include "transport/data.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

/* ---- small messages -------------------------------------------------------------------------- */

TEST(eager_limit)
{
	struct mesh_message_header header;
	struct mesh_request *request;
	const void *payload;

	memset(fixture_memory, 0x5a, FIXTURE_EAGER_LIMIT);
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, FIXTURE_EAGER_LIMIT);
	header = fixture_last_sent(MESH_MESSAGE_DATA, &payload);
	assert_int_equal(header.comm, FIXTURE_REMOTE_ID);
	assert_int_equal(header.token, FIXTURE_REMOTE_TOKEN);
	assert_int_equal(header.length, FIXTURE_EAGER_LIMIT);
	assert_memory_equal(payload, fixture_memory, FIXTURE_EAGER_LIMIT);
	assert_false(fixture_is_done(request)); /* the buffer is the provider's yet */
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
	fixture_post(comm, FIXTURE_EAGER_LIMIT + 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
}

/* The smaller limit of both ends holds. */
TEST(eager_limit_of_the_peer)
{
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	fixture.peers[0].eager_limit = 100;
	comm = fixture_comm_open(true);
	fixture_post(comm, 100);
	fixture_post(comm, 101);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
}

/* A NIC with ofi_rxm may join a process whose others have tcp: its comms fit it, in any order. */
TEST(eager_limit_of_each_path)
{
	fixture.setup.process.config.eager_limit_bytes = 65536;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	fixture.peers[0].eager_limit = fixture.peers[1].eager_limit = 65536;
	comm = fixture_comm_open(true);
	assert_int_equal(*comm_inside(comm).eager_limit, 65536);
	fixture_comm_close(comm);
	for (int rxm = 0; rxm < 2; rxm++) {
		fixture.domains[rxm]->provider = MESH_PROVIDER_TCP_RXM;
		comm = fixture_comm_open(true);
		assert_int_equal(*comm_inside(comm).eager_limit, 8192);
		fixture_comm_close(comm);
		fixture.domains[rxm]->provider = MESH_PROVIDER_TCP;
		fixture.peers[rxm].eager_limit = 4096;
		comm = fixture_comm_open(false);
		assert_int_equal(*comm_inside(comm).eager_limit, 4096);
		fixture_comm_close(comm);
		fixture.peers[rxm].eager_limit = 65536;
	}
}

/* As many as the receiver keeps before it has posted; more, once it reports its posts. */
TEST(eager_window)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	for (int i = 0; i < MESH_EAGER_WINDOW + 4; i++)
		fixture_post(comm, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW);
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, 2, NULL, 0);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW + 2);
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, 1, NULL, 0); /* came late */
	assert_int_equal(*comm_inside(comm).peer_posted, 2);
	fixture_grant(comm, 2, 1, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW + 3);
	assert_int_equal(*comm_inside(comm).peer_posted, 3);
}

/* ---- grants -------------------------------------------------------------------------------- */

/* The receiver is asked once for what it holds back; and for all that there is by now. */
TEST(want)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 0); /* nothing is held back yet */
	fixture_post(comm, SMALL);
	fixture_post(comm, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_WANT, NULL).seq, 2);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 2); /* the second small one came after */
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 2);
}

/* A large message that waits does not hold up those behind it. */
TEST(grant_of_the_next_message)
{
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 1, 1, LARGE);
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).seq, 1);
	assert_int_equal(comm->send.first_pending, 0);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(comm->send.first_pending, 2);
	fixture_poll();
}

TEST(grant_for_other_paths)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture.num_paths = 2;
	fixture_grant(comm, 0, 1, LARGE);
	fixture.num_paths = 1;
	assert_failed(comm, -EPROTO, "a grant for another number of paths");
	assert_int_equal(fake.writes.num, 0);
}

/*
 * It may lead over another NIC: what was granted before does not count, and comes again. A grant
 * may overtake the answer, or be late.
 */
TEST(grants_of_an_earlier_life)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_grant(comm, 0, 1, LARGE);
	fixture.lives = 1;
	fixture_grant(comm, 1, 1, LARGE);
	fixture.lives = 0;
	fixture_grant(comm, 1, 1, SMALL);
	fixture.lives = 1;
	fixture_live_again(&comm->paths[1], FIXTURE_REMOTE_ID + 1, FIXTURE_REMOTE_TOKEN + 1);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	assert_int_equal(fake.writes.num, 0); /* the second one waits for a push */
	fixture.lives = 0;
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).seq, 1);
	fixture.lives = 1;
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(comm->send.first_pending, 2);
	fixture_writes_complete(fake.writes.num);
	fixture_comm_close(comm);
}

TEST(wrong_kind_of_message)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, fixture_memory, 8);
	assert_failed(comm, -EPROTO, "a message of the wrong kind");
}

/*
 * A receiver posts a receive where an earlier one is complete: at most MESH_COMM_REQUESTS are ahead
 * of what was sent. A peer that reports more lies, and what is sent again is counted from there.
 */
TEST(more_than_can_be_posted)
{
	const uint32_t most = MESH_COMM_REQUESTS + 1; /* one message is sent */

	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	for (int i = 0; i < 2; i++) {
		comm = fixture_comm_open(true);
		fixture_post(comm, SMALL);
		fixture_message(comm, 0, MESH_MESSAGE_POSTED, most, NULL, 0);
		assert_int_equal(*comm_inside(comm).error, 0);
		if (i)
			fixture_message(comm, 0, MESH_MESSAGE_POSTED, most + 1, NULL, 0);
		else
			fixture_grant(comm, most - 1, 2, LARGE);
		assert_failed(comm, -EPROTO, "more receives than it can have posted");
		assert_int_equal(*comm_inside(comm).peer_posted, most);
		fixture_comm_close(comm);
	}
}
