/* SPDX-License-Identifier: Apache-2.0 */
/* test_credit.c - what a sending comm may send: small messages ahead, large ones by grants. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "transport/request.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)

static struct mesh_comm *comm;

/* ---- small messages -------------------------------------------------------------------------- */

static void test_eager_limit(void **state)
{
	struct mesh_message_header header;
	struct mesh_request *request;
	const void *payload;

	(void)state;
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
	fixture_comm_close(comm);
}

/* The smaller limit of both ends holds. */
static void test_eager_limit_of_the_peer(void **state)
{
	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	fixture.peers[0].eager_limit = 100;
	comm = fixture_comm_open(true);
	fixture_post(comm, 100);
	fixture_post(comm, 101);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
	fixture_comm_close(comm);
}

/* As many as the receiver keeps before it has posted; more, once it reports its posts. */
static void test_eager_window(void **state)
{
	int i;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	for (i = 0; i < MESH_EAGER_WINDOW + 4; i++)
		fixture_post(comm, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW);
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, 2, NULL, 0);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW + 2);
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, 1, NULL, 0); /* came late */
	assert_int_equal(*comm_inside(comm).peer_posted, 2);
	fixture_grant(comm, 2, 1, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), MESH_EAGER_WINDOW + 3);
	assert_int_equal(*comm_inside(comm).peer_posted, 3);
	fixture_comm_close(comm);
}

/* ---- grants -------------------------------------------------------------------------------- */

/* The receiver is asked once for what it holds back; and for all that there is by now. */
static void test_want(void **state)
{
	(void)state;
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
	fixture_comm_close(comm);
}

/* A grant is for one receive: that of a round before says nothing. */
static void test_grant_of_another_round(void **state)
{
	uint32_t seq;

	(void)state;
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++) {
		struct mesh_request *request = fixture_post(comm, LARGE);

		assert_int_equal(fake.writes.num, seq); /* not without a grant */
		fixture_grant(comm, seq, 1, LARGE);
		fixture_poll();
		assert_int_equal(fake.writes.num, seq + 1);
		assert_true(fixture_is_done(request));
	}
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE); /* comes twice, a round later */
	assert_int_equal(fake.writes.num, MESH_COMM_REQUESTS);
	fixture_grant(comm, MESH_COMM_REQUESTS, 2, LARGE);
	assert_int_equal(fake.writes.num, MESH_COMM_REQUESTS + 1);
	fixture_grant(comm, 1, 1, LARGE); /* the same, and another has come for its slot */
	fixture_post(comm, LARGE);
	assert_int_equal(fake.writes.num, MESH_COMM_REQUESTS + 2);
	fixture_poll();
	fixture_comm_close(comm);
}

/* A large message that waits does not hold up those behind it. */
static void test_grant_of_the_next_message(void **state)
{
	(void)state;
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 1, 1, LARGE);
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).seq, 1);
	assert_int_equal(mesh_send_count(comm), 0);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(mesh_send_count(comm), 2);
	fixture_poll();
	fixture_comm_close(comm);
}

static void test_grant_for_other_paths(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture.num_paths = 2;
	fixture_grant(comm, 0, 1, LARGE);
	fixture.num_paths = 1;
	assert_failed(comm, -EPROTO, "a grant for another number of paths");
	assert_int_equal(fake.writes.num, 0);
	fixture_comm_close(comm);
}

static void test_wrong_kind_of_message(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, fixture_memory, 8);
	assert_failed(comm, -EPROTO, "a message of the wrong kind");
	fixture_comm_close(comm);
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Immediates of 64 bits tell the true size; those of 32 need a SIZE, unless the grant is filled. */
static void test_size_is_told(void **state)
{
	static const struct {
		size_t cq_data_size;
		uint64_t room;
		int messages;
		uint32_t in_immediate;
	} cases[] = {
		{8, LARGE, 0, LARGE},
		{8, LARGE + 1, 0, LARGE},
		{4, LARGE, 0, 0},
		{4, LARGE + 1, 1, 0},
	};
	const void *payload;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mesh_message_size size;

		fixture_setup(state);
		fake.writes_end_with = -1;
		fake.cq_data_size = cases[i].cq_data_size;
		comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, true);
		fixture_post(comm, LARGE);
		fixture_grant(comm, 0, 1, cases[i].room);
		fixture_poll();
		assert_int_equal(fake.writes.num, 1);
		assert_int_equal(fake.writes.posts[0].size, LARGE);
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).full,
				 cases[i].room == LARGE);
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).size,
				 cases[i].in_immediate);
		assert_int_equal(fixture_sent(MESH_MESSAGE_SIZE), cases[i].messages);
		if (cases[i].messages) {
			fixture_last_sent(MESH_MESSAGE_SIZE, &payload);
			memcpy(&size, payload, sizeof(size));
			assert_true(size.size == LARGE);
		}
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* A size that was sent is not sent again if the write after it has to wait. */
static void test_size_is_told_once(void **state)
{
	(void)state;
	fake.cq_data_size = 4;
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, true);
	fixture_post(comm, LARGE);
	fake_fail(FAKE_WRITE, 0, 2, -FI_EAGAIN);
	fixture_grant(comm, 0, 1, LARGE + 1);
	fixture_poll();
	fixture_poll();
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_SIZE), 1);
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* Larger than its receive: nothing is written, and the receiver learns the size, too. */
static void test_larger_than_its_receive(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE - 1);
	assert_failed(comm, -EMSGSIZE, "message 0 of 65536 bytes is larger than the receive");
	assert_int_equal(fake.writes.num, 0);
	assert_int_equal(fixture_sent(MESH_MESSAGE_SIZE), 1);
	/* Nothing starts on a comm that has failed. */
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.writes.num, 0);
	fixture_request_fails(fixture_post(comm, 8), -EMSGSIZE);
	assert_int_equal(fake.writes.num + fixture_sent(MESH_MESSAGE_DATA), 0);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_eager_limit),
		TEST(test_eager_limit_of_the_peer),
		TEST(test_eager_window),
		TEST(test_want),
		TEST(test_grant_of_another_round),
		TEST(test_grant_of_the_next_message),
		TEST(test_grant_for_other_paths),
		TEST(test_wrong_kind_of_message),
		cmocka_unit_test(test_size_is_told),
		TEST(test_size_is_told_once),
		TEST(test_larger_than_its_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
