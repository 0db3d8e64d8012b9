/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_acks_said.c - the receiver's word for what it has, in place of the provider's
 * acknowledgement: when a receiver says it. test_acks.c has the sending end.
 */
#include <errno.h>

#include "base/clock.h"
#include "transport/answer.h"
#include "transport/stall.h"

#include "acks_fixture.h"
#include "fake_clock.h"

#define ACK_US 20 /* grants.c */

static void message_comes(uint32_t seq)
{
	fixture_written(comm, 0, (struct mesh_immediate){.seq = seq, .last = true, .size = LARGE});
}

/* The last POSTED or GRANT says that so many are complete. */
static void assert_said(enum mesh_message_type type, uint32_t count)
{
	assert_int_equal(fixture_last_sent(type, NULL).acked, MESH_ACKED(count));
}

/* NCCL may not poll for it again. */
static void test_last_receive_is_said_at_once(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	message_comes(0);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	assert_said(MESH_MESSAGE_POSTED, 1);
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	fixture_comm_close(comm);
}

/* The GRANT that the sender needs for its next message has it with it. */
static void test_grant_says_it(void **state)
{
	struct mesh_request *request;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	request = fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_poll();
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).acked, 0); /* nothing */
	message_comes(0);
	assert_true(fixture_is_done(request));
	fixture_post(comm, LARGE);
	fixture_poll();
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).seq, 2);
	assert_said(MESH_MESSAGE_GRANT, 1);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 0);
	fixture_comm_close(comm);
}

/* Without one a poll says it a moment later; what comes meanwhile goes with it. */
static void test_said_after_a_moment(void **state)
{
	uint32_t seq;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (seq = 0; seq < 4; seq++)
		fixture_post(comm, LARGE);
	fixture_poll();
	message_comes(0);
	message_comes(2); /* does not count before 1 is there */
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 0);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	assert_said(MESH_MESSAGE_POSTED, 1);
	message_comes(1);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_said(MESH_MESSAGE_POSTED, 3);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 2);
	fixture_comm_close(comm);
}

/* One that was complete early counts when those before it are, however they have come. */
static void test_said_when_the_gap_closes(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_poll();
	message_comes(1);
	fake_clock_us += ACK_US;
	fixture_poll();
	fixture_data(comm, 0, 8);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_said(MESH_MESSAGE_POSTED, 2);
	fixture_comm_close(comm);
}

/* Numbers go round: small messages between two large ones may be any number. */
static void test_said_after_many(void **state)
{
	const uint32_t many = 0x80000123;
	struct mesh_request *request;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	request = fixture_post(comm, LARGE);
	message_comes(0);
	assert_true(fixture_is_done(request));
	assert_said(MESH_MESSAGE_POSTED, 1);
	mesh_comm_lock(comm);
	comm->next_seq = comm->receive.next_grant = comm->receive.reported = many;
	comm->receive.acked = comm->receive.ack_wanted = many; /* every few receives are said */
	mesh_comm_unlock(comm);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).acked, 0);
	message_comes(many);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 2);
	assert_said(MESH_MESSAGE_POSTED, many + 1);
	fixture_comm_close(comm);
}

/* The engine says it for an NCCL that does not poll, and whenever the sender asks. */
static void test_said_without_a_poll(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_poll();
	message_comes(0);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_tick(comm, mesh_clock_ms());
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	mesh_stall_tick(comm, mesh_clock_ms());
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 1);
	mesh_stall_asked(comm, 0);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 2);
	assert_said(MESH_MESSAGE_POSTED, 1);
	fixture_comm_close(comm);
}

/* NCCL_MESH_RECOVERY is off at this end only: the sender waits for the word all the same. */
static void test_said_without_recovery(void **state)
{
	(void)state;
	fixture.setup.process.config.recovery = 0;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	message_comes(0);
	assert_said(MESH_MESSAGE_POSTED, 1);
	fixture_comm_close(comm);
}

/* Of larger messages, and over several paths, the provider has told the sender. */
static void test_nothing_to_say(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, MOST + 1);
	fixture_written(comm, 0, (struct mesh_immediate){.last = true, .size = (uint32_t)MOST + 1});
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 0);
	acks_begin_anew(state);

	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	fixture_post(comm, LARGE);
	message_comes(0);
	fake_clock_us += ACK_US;
	fixture_poll();
	assert_int_equal(fixture_sent(MESH_MESSAGE_POSTED), 0);
	fixture_comm_close(comm);
}

/* A sender that has closed with writes on their way: the receiver waits for all of them. */
static void test_receiver_counts(void **state)
{
	const struct mesh_frame_closed closed = {.sent = 2, .writes = 2, .unacked = 1};

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	message_comes(0);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_closed_came(comm, &closed);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, 0);
	message_comes(1);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_tick(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, -EPIPE); /* for the third one */
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, acks_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_last_receive_is_said_at_once),
		TEST(test_grant_says_it),
		TEST(test_said_after_a_moment),
		TEST(test_said_when_the_gap_closes),
		TEST(test_said_after_many),
		TEST(test_said_without_a_poll),
		TEST(test_said_without_recovery),
		TEST(test_nothing_to_say),
		TEST(test_receiver_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
