/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_last_word.c - a receiver closes, and may end its process, while its sender does not know yet
 * whether all messages have arrived: the receiver's CLOSED says so.
 */
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "transport/answer.h"
#include "transport/comm_end.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define MESSAGES 3

static struct mesh_comm *comm;
static struct mesh_request *requests[MESSAGES];

static struct mesh_comm *resuming_open(bool sending)
{
	fixture.setup.process.config.recovery = 1;
	return fixture_open(MESH_PROVIDER_TCP, 2, sending);
}

/* As the engine does it. */
static void tick(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_asked_tick(&fixture.setup.process, mesh_clock_ms());
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void closed_comes(uint32_t received)
{
	const struct mesh_frame_closed frame = {.sent = received};

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_closed_came(comm, &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void close_comes(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_close_came(comm);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void have_comes(uint32_t seq, uint32_t round, bool complete)
{
	const struct mesh_frame_have have = {.seq = seq, .round = round, .complete = complete};

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_came(comm, &have);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* Posts messages that are all on their way. */
static void messages_post(void)
{
	int i;

	comm = resuming_open(true);
	for (i = 0; i < MESSAGES; i++)
		requests[i] = fixture_post(comm, ROOM);
	fixture_grant(comm, 0, MESSAGES, ROOM);
	fixture_sends_complete();
}

/* The second path is lost: the writes on it fail, and those on the first arrive. */
static void second_fails(void)
{
	const struct fake_post *post;

	for (; fixture.writes_completed < fake.writes.num; fixture.writes_completed++) {
		post = &fake.writes.posts[fixture.writes_completed];
		if (post->to == FAKE_ADDR_FIRST) {
			fake_complete(post);
			continue;
		}
		fake_complete_error(post->context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = post->domain;
	}
	fixture_poll();
}

/* Each message has a segment on each path. */
static void none_is_done(void)
{
	int i;

	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(fixture_test(requests[i]), -1);
}

/* What the receiver has is sent; what it has not fails, because nobody takes it. */
static void test_closed_ends_the_doubt(void **state)
{
	(void)state;
	messages_post();
	second_fails();
	none_is_done();
	closed_comes(MESSAGES - 1);
	assert_int_equal(fixture_test(requests[0]), ROOM);
	assert_int_equal(fixture_test(requests[1]), ROOM);
	fixture_request_fails(requests[2], -EPIPE);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 1);
	fixture_comm_close(comm);
}

/* All of them: then nothing has failed. */
static void test_closed_ends_every_doubt(void **state)
{
	int i;

	(void)state;
	messages_post();
	second_fails();
	tick();
	tick();
	for (i = 0; i < MESSAGES; i++)
		fixture_frame(MESH_FRAME_RESUME);
	closed_comes(MESSAGES);
	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(fixture_test(requests[i]), ROOM);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 0);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 0);
	fixture_comm_close(comm);
}

/* The loss is noticed after CLOSED: until then the writes are in flight. */
static void test_doubt_after_closed(void **state)
{
	int i;

	(void)state;
	messages_post();
	closed_comes(MESSAGES);
	none_is_done();
	fixture_frame(MESH_FRAME_CLOSE);
	second_fails();
	none_is_done();
	tick();
	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(fixture_test(requests[i]), ROOM);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 0);
	fixture_frame(MESH_FRAME_CLOSED); /* the first one may be lost with the path */
	tick();
	assert_true(fixture_no_frame()); /* nothing is to be asked */
	fixture_comm_close(comm);
}

/* So is the end of the process. */
static void test_loss_after_closed(void **state)
{
	int i;

	(void)state;
	messages_post();
	closed_comes(MESSAGES);
	second_fails();
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_peer_lost(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(fixture_test(requests[i]), ROOM);
	fixture_comm_close(comm);
}

/* A peer that claims what was never posted harms itself only. */
static void test_closed_claims_too_much(void **state)
{
	(void)state;
	comm = resuming_open(true);
	requests[0] = fixture_post(comm, ROOM);
	requests[1] = fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	fixture_sends_complete();
	second_fails();
	closed_comes(1000);
	assert_int_equal(fixture_test(requests[0]), ROOM);
	fixture_request_fails(requests[1], -EPIPE);
	fixture_comm_close(comm);
}

/* A receiver that is closing has not said yet what it has. */
static void test_close_does_not_end_the_doubt(void **state)
{
	uint32_t round;
	int i;

	(void)state;
	messages_post();
	second_fails();
	tick();
	tick();
	round = fixture_frame(MESH_FRAME_RESUME).resume.round;
	for (i = 1; i < MESSAGES; i++)
		fixture_frame(MESH_FRAME_RESUME);
	close_comes();
	tick();
	fixture_frame(MESH_FRAME_CLOSE);
	assert_true(fixture_no_frame());
	none_is_done();
	have_comes(0, round, true);
	assert_int_equal(fixture_test(requests[0]), ROOM);
	have_comes(1, round, true);
	tick();
	assert_true(fixture_no_frame());
	have_comes(2, round, false); /* it has not, and takes nothing more */
	tick();
	assert_int_equal(fixture_test(requests[1]), ROOM);
	fixture_request_fails(requests[2], -EPIPE);
	fixture_frame(MESH_FRAME_CLOSED);
	fixture_comm_close(comm);
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void message_arrives(uint32_t seq)
{
	const struct mesh_immediate last = {.seq = seq, .last = true};

	fixture_written(comm, 0, last);
}

/* It counts what is complete up to the first message that is not. */
static void test_closed_counts(void **state)
{
	int i, complete;

	for (complete = 0; complete <= MESSAGES; complete++) {
		fixture_setup(state);
		fixture.setup.process.config.recovery = 0;
		comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
		for (i = 0; i < MESSAGES; i++)
			requests[i] = fixture_post(comm, ROOM);
		for (i = 0; i < MESSAGES; i++) {
			if (i != complete)
				message_arrives((uint32_t)i);
		}
		closed_comes(0); /* nothing of the sender is in flight */
		assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.sent, complete);
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* A receiver that has failed still says what it has: the sender must not wait. */
static void test_failed_receiver_answers(void **state)
{
	const struct mesh_frame_resume resume = {.seq = 0, .round = 3};

	(void)state;
	comm = resuming_open(false);
	fixture_post(comm, ROOM);
	fixture_fail(comm, -EIO);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_resume_came(comm, &resume);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.complete, 0);
	fixture_comm_close(comm);
}

static int teardown(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	mesh_lock_release(&process->lock);
	return fixture_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_closed_ends_the_doubt),     TEST(test_closed_ends_every_doubt),
		TEST(test_doubt_after_closed),	      TEST(test_loss_after_closed),
		TEST(test_closed_claims_too_much),    TEST(test_close_does_not_end_the_doubt),
		cmocka_unit_test(test_closed_counts), TEST(test_failed_receiver_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
