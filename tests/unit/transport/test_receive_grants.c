/* SPDX-License-Identifier: Apache-2.0 */
/* test_receive_grants.c - what a receiving comm sends to its sender, and when. */
#include "fabric/mr.h"
#include "transport/data.h"
#include "transport/comm_life.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define SMALL ((size_t)64)
/* After so many small messages in a row grants are held back (receive.c). */
#define EAGER_RUN 4

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

/* ---- grants -------------------------------------------------------------------------------- */

/* Where each path may write, and with which key; nothing where there is no room. */
TEST(grant_has_all_paths)
{
	struct mesh_message_header header;
	struct mesh_request *request;
	struct mesh_grant grant;
	const void *sent;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	assert_int_equal(mesh_comm_receive(comm, fixture_memory + 4096, 5000,
					   fixture_registration(comm), &request),
			 0);
	header = fixture_last_sent(MESH_MESSAGE_GRANT, &sent);
	assert_int_equal(header.seq, 0);
	assert_int_equal(header.count, 1);
	assert_int_equal(header.paths, 2);
	assert_int_equal(header.length, mesh_grant_size(2));
	memcpy(&grant, sent, mesh_grant_size(2));
	assert_int_equal(grant.size, 5000);
	for (int i = 0; i < 2; i++) {
		assert_true(grant.targets[i].address == (uintptr_t)fixture_memory + 4096);
		assert_true(grant.targets[i].key ==
			    mesh_mr_key(fixture_registration(comm)->mrs[i]));
	}
	assert_true(grant.targets[0].key != grant.targets[1].key);
	assert_int_equal(mesh_comm_receive(comm, NULL, 0, NULL, &request), 0);
	fixture_poll();
	header = fixture_last_sent(MESH_MESSAGE_GRANT, &sent);
	assert_int_equal(header.seq, 1);
	memcpy(&grant, sent, mesh_grant_size(2));
	assert_int_equal(grant.size + grant.targets[0].address + grant.targets[0].key, 0);
}

/* The first leaves at once; those behind it with the next poll, in one message. */
TEST(grants_leave_together)
{
	struct mesh_message_header header;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (int i = 0; i < 1 + 2 * MESH_GRANTS_PER_MESSAGE; i++)
		fixture_post(comm, ROOM);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 3);
	header = fixture_last_sent(MESH_MESSAGE_GRANT, NULL);
	assert_int_equal(header.seq, 1 + MESH_GRANTS_PER_MESSAGE);
	assert_int_equal(header.count, MESH_GRANTS_PER_MESSAGE);
	assert_int_equal(*comm_inside(comm).granted, 1 + 2 * MESH_GRANTS_PER_MESSAGE);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 3);
}

/* A message that fills its receive comes, and NCCL takes it. */
static void message_take(uint32_t seq)
{
	struct mesh_request *request = mesh_comm_request(comm, seq);

	fixture_written(comm, 0, (struct mesh_immediate){.seq = seq, .last = true});
	assert_true(fixture_test(request) > 0);
}

/* The sender holds four grants: further ones wait until it holds three, unless it asks. */
TEST(grants_that_may_wait)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (uint32_t seq = 0; seq < 5; seq++)
		fixture_post(comm, ROOM);
	fixture_poll();
	message_take(0);
	fixture_post(comm, ROOM);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).granted, 4);
	fixture_message(comm, 0, MESH_MESSAGE_WANT, 5, NULL, 0);
	assert_int_equal(*comm_inside(comm).granted, 5);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).seq, 5);
	for (uint32_t seq = 6; seq < 8; seq++)
		fixture_post(comm, ROOM);
	fixture_poll();
	message_take(1);
	assert_int_equal(*comm_inside(comm).granted, 4);
	/* With the next one it holds three, and the two leave inside that poll. */
	message_take(2);
	assert_int_equal(*comm_inside(comm).granted, 5);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).seq, 6);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).count, 2);
}

/* More than fit into one message never wait: a sender with 32 receives holds 24 grants at least. */
TEST(no_more_than_a_message_waits)
{
	uint32_t seq, least = MESH_COMM_REQUESTS;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++)
		fixture_post(comm, ROOM);
	fixture_poll();
	assert_true(*comm_inside(comm).granted >= least - (MESH_GRANTS_PER_MESSAGE - 1));
	for (seq = 0; seq < 4 * MESH_COMM_REQUESTS; seq++) {
		message_take(seq);
		fixture_post(comm, ROOM);
		fixture_poll();
		if (*comm_inside(comm).granted < least)
			least = *comm_inside(comm).granted;
	}
	assert_true(least >= MESH_COMM_REQUESTS - MESH_GRANTS_PER_MESSAGE);
}

/* What the fake keeps of messages that are done is forgotten: there is room for so many. */
static void fake_forget(void)
{
	fixture_sends_complete();
	fake.sends.num = fixture.sends_completed = 0;
	fake.completed = fake.read = 0;
}

/* Four short messages are soon sent: their grants leave at once, as long as they are little. */
TEST(short_messages_do_not_wait)
{
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, false);
	for (uint32_t seq = 0; seq < 8; seq++)
		fixture_post(comm, 16 << 10);
	fixture_poll();
	for (uint32_t seq = 0; seq < 32; seq++) {
		message_take(seq);
		fixture_post(comm, 16 << 10);
		fixture_poll();
		assert_true(*comm_inside(comm).granted >= 7);
	}
}

/* GRANT messages for 2,048 messages of @size with @depth receives posted, as NCCL reposts them. */
static int grants_of_stream(size_t size, uint32_t depth)
{
	uint32_t seq, least = depth;
	int grants = 0;

	for (seq = 0; seq < depth; seq++)
		fixture_post(comm, size);
	fixture_poll();
	for (seq = 0; seq < 2048; seq++) {
		message_take(seq);
		if (*comm_inside(comm).granted < least)
			least = *comm_inside(comm).granted;
		fixture_post(comm, size);
		fixture_poll();
		grants += fixture_sent(MESH_MESSAGE_GRANT);
		fake_forget();
	}
	/* The sender always has something to send meanwhile. */
	assert_true(least >= 3);
	return grants;
}

/* A grant costs a message of its own only where a sender could miss it. */
TEST(grants_of_a_stream)
{
	static const size_t sizes[] = {64 << 10, 512 << 10, ROOM};
	int grants;

	FOR_EACH(i, sizes) {
		comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, false);
		grants = grants_of_stream(sizes[i], 8);
		if (grants > 2048 / 4 + 4)
			fail_msg("%d GRANTs for 2048 messages of %zu bytes", grants, sizes[i]);
		fixture_teardown();
		fixture_setup();
	}
}

/* So many small messages come and are taken, from @seq on. */
static void small_run(uint32_t seq, int count)
{
	for (int i = 0; i < count; i++) {
		struct mesh_request *request = fixture_post(comm, SMALL);

		fixture_data(comm, seq + (uint32_t)i, SMALL);
		assert_int_equal(fixture_test(request), SMALL);
	}
}

/* After a run of small messages there is a POSTED every eighth receive, and no grant. */
TEST(grants_are_held_back)
{
	int grants;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	small_run(0, EAGER_RUN - 1);
	grants = fixture_sent(MESH_MESSAGE_GRANT);
	assert_int_equal(grants, EAGER_RUN - 1);
	small_run(EAGER_RUN - 1, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), grants + 1);
	small_run(EAGER_RUN, 7);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), grants + 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 0);
	small_run(EAGER_RUN + 7, 1);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_POSTED, NULL).seq, EAGER_RUN + 8);
	small_run(EAGER_RUN + 8, 8);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 2);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), grants + 1);
}

/* WANT is answered with the grants of all posted receives, and ends the run. */
TEST(want_ends_the_run)
{
	const struct mesh_message_written written = {0, 1, 0};
	struct mesh_message_header header;
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	small_run(0, 2 * EAGER_RUN);
	request = fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_poll();
	/* A write without a grant is not from our peer, or is late. */
	fixture_announce(comm, 0, 2 * EAGER_RUN, 1, &written);
	fixture_written(comm, 0, (struct mesh_immediate){.seq = 2 * EAGER_RUN, .last = true});
	assert_int_equal(fixture_test(request), -1);
	fixture_message(comm, 0, MESH_MESSAGE_WANT, 2 * EAGER_RUN + 2, NULL, 0);
	header = fixture_last_sent(MESH_MESSAGE_GRANT, NULL);
	assert_int_equal(header.seq, 2 * EAGER_RUN);
	assert_int_equal(header.count, 2);
	/* It asked for the next one as well; earlier small messages do not start a new run. */
	fixture_data(comm, 2 * EAGER_RUN, SMALL);
	fixture_data(comm, 2 * EAGER_RUN + 1, SMALL);
	fixture_data(comm, 2 * EAGER_RUN + 2, SMALL);
	assert_int_equal(*comm_inside(comm).eager_run, 0);
	fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_poll();
	header = fixture_last_sent(MESH_MESSAGE_GRANT, NULL);
	assert_int_equal(header.seq, 2 * EAGER_RUN + 3);
}

/* It may name what is not posted yet, with small messages behind it. */
TEST(want_comes_early)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_message(comm, 0, MESH_MESSAGE_WANT, 1, NULL, 0);
	fixture_message(comm, 0, MESH_MESSAGE_WANT, 0, NULL, 0); /* says less */
	for (uint32_t seq = 0; seq < EAGER_RUN; seq++)
		fixture_data(comm, 2 + seq, SMALL);
	assert_int_equal(*comm_inside(comm).eager_run, EAGER_RUN);
	fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).granted, 2);
}

/* Grants that are held back do not delay POSTED: it leaves at once. */
TEST(posted_leaves_at_once)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, ROOM);
	small_run(1, EAGER_RUN);
	assert_true(*comm_inside(comm).granted > 0);
	for (int i = 0; i < 8; i++)
		fixture_post(comm, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
}

/* A large message ends the run as well: what was held back leaves. */
TEST(large_ends_the_run)
{
	struct mesh_message_header header;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	small_run(0, EAGER_RUN - 1);
	fixture_post(comm, ROOM); /* granted */
	fixture_post(comm, ROOM);
	fixture_data(comm, EAGER_RUN, SMALL);
	fixture_poll();
	fixture_post(comm, ROOM);
	fixture_poll();
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).seq, EAGER_RUN - 1);
	fixture_written(comm, 0,
			(struct mesh_immediate){.seq = EAGER_RUN - 1, .segment = 0, .size = ROOM});
	header = fixture_last_sent(MESH_MESSAGE_GRANT, NULL);
	assert_int_equal(header.seq, EAGER_RUN + 1);
}

/* The rest of one that is half written may come over another path: it is granted again, too. */
TEST(grants_again_for_half_written)
{
	struct mesh_message_header header;
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	request = fixture_post(comm, ROOM);
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 0});
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
	process_take();
	mesh_stall_asked(comm, &(struct mesh_frame_ask){.seq = 0});
	process_release();
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 2);
	header = fixture_last_sent(MESH_MESSAGE_GRANT, NULL);
	assert_int_equal(header.seq, 0);
	assert_int_equal(header.count, 1);
	assert_int_equal(*comm_inside(comm).granted, 1);
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 1, .last = true});
	assert_int_equal(fixture_test(request), ROOM);
	assert_int_equal(*comm_inside(comm).granted, 0);
}

/* A comm that has failed grants nothing more. */
TEST(nothing_is_granted_after_the_end)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_fail(comm, -EPIPE);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
}
