/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_last_word.c - a receiver closes, and may end its process, while its sender does not know yet
 * whether all messages have arrived: the receiver's CLOSED says so.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "transport/answer.h"
#include "transport/comm_end.h"
#include "transport/frames.h"
#include "transport/linger.h"
#include "transport/path_state.h"
#include "transport/questions.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"

#include "comm_fixture.h"
#include "fake_clock.h"
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
	assert_failed(comm, -EPIPE, "the receiver closed the connection, or failed");
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 1);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 1);
	fixture_comm_close(comm);
}

/*
 * It lies unread in the control connection of the link on which a write has just failed: the
 * receiver's process may have ended behind it, so that nobody says it again.
 */
static void test_closed_is_unread(void **state)
{
	struct mesh_frame frame = {.closed = {.sent = MESSAGES}};
	int i;

	(void)state;
	messages_post();
	frame.to_comm = comm_path(comm, 0).sink->id;
	assert_true(write(fixture.frames, &frame, mesh_frame_finish(&frame, MESH_FRAME_CLOSED)) >
		    0);
	mesh_lock_take(&fixture.setup.process.lock);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[0], entry);
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[0], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	mesh_lock_release(&fixture.setup.process.lock);
	second_fails();
	none_is_done();
	tick();
	assert_int_equal(fixture.peers[0].state, MESH_PEER_LOST);
	for (i = 0; i < MESSAGES; i++)
		assert_int_equal(fixture_test(requests[i]), ROOM);
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
	mesh_resume_came(&comm->paths[0], &resume);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.complete, 0);
	fixture_comm_close(comm);
}

/* ---- until the word has come --------------------------------------------------------------- */

#define LIMIT_MS (1000 + 2500) /* the fixture's timeout, and VERDICT_MS of close.c */
#define ACKNOWLEDGED_MS 1000   /* linger.c */

static struct mesh_comm *other; /* so that no close is the last one, which waits */

/* A receiver closes whose messages have all arrived. */
static void receiver_closes(enum mesh_provider_id provider, int num_paths)
{
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(provider, num_paths, false);
	other = fixture_comm_open(false);
	requests[0] = fixture_post(comm, ROOM);
	message_arrives(0);
	assert_int_equal(fixture_test(requests[0]), ROOM);
	fixture_sends_complete();
	mesh_comm_close(comm);
}

static bool lingers(void)
{
	return !LIST_EMPTY(&fixture.setup.process.lingering);
}

/* The engine looks at it, so long after it was closed. */
static void look(uint64_t after_ms)
{
	mesh_lock_take(&fixture.setup.process.lock);
	comm->timer.expired(&comm->timer, comm->closed_ms + after_ms);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void second_is_lost(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_lock(comm);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_comm_unlock(comm);
	mesh_comms_recover(&fixture.setup.process);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* As it comes from the control connection. */
static void sender_answers(void)
{
	struct mesh_frame frame = {.header = {.type = MESH_FRAME_CLOSED}};

	mesh_lock_take(&fixture.setup.process.lock);
	frame.to_comm = comm->paths[0].sink.id;
	mesh_comm_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The sender's CLOSED ends it. Until then CLOSED is repeated if a link is lost. */
static void test_receiver_lingers(void **state)
{
	(void)state;
	receiver_closes(MESH_PROVIDER_TCP, 2);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.sent, 1);
	assert_true(lingers());
	second_is_lost();
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.sent, 1);
	second_is_lost();
	assert_true(fixture_no_frame());
	assert_true(lingers());
	sender_answers();
	assert_false(lingers());
	fixture_comm_close(other);
}

/* A sender that has closed first needs no word. */
static void test_receiver_that_closes_last(void **state)
{
	(void)state;
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	other = fixture_comm_open(false);
	sender_answers();
	mesh_comm_close(comm);
	assert_false(lingers());
	fixture_comm_close(other);
}

/* One without recovery has lost its comm with the link. */
static void test_receiver_without_recovery(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	other = fixture_comm_open(false);
	mesh_comm_close(comm);
	assert_false(lingers());
	fixture_comm_close(other);
}

/* The sender's process is stopped: its kernel has CLOSED, and what the provider has sent. */
static void test_acknowledgement_is_enough(void **state)
{
	(void)state;
	receiver_closes(MESH_PROVIDER_TCP, 2);
	look(ACKNOWLEDGED_MS - 1);
	assert_true(lingers());
	fixture.peers[1].out_size = 1; /* a frame that the socket did not accept */
	look(ACKNOWLEDGED_MS);
	assert_true(lingers());
	fixture.peers[1].out_size = 0;
	comm->end_in_doubt = true; /* a path was lost, and CLOSED is to be repeated */
	look(ACKNOWLEDGED_MS);
	assert_true(lingers());
	comm->end_in_doubt = false;
	look(ACKNOWLEDGED_MS);
	assert_false(lingers());
	fixture_comm_close(other);
}

/* On verbs the sender's NIC awaits the answers of ours, of which no socket knows. */
static void test_acknowledgement_on_verbs(void **state)
{
	(void)state;
	receiver_closes(MESH_PROVIDER_VERBS_RXM, 2);
	look(LIMIT_MS - 1);
	assert_true(lingers());
	look(LIMIT_MS);
	assert_false(lingers());
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_comm_close(other);
}

/* Without a path the word waits for one, but not if NCCL aborts, or the process has ended. */
static void test_no_path_is_left(void **state)
{
	(void)state;
	receiver_closes(MESH_PROVIDER_TCP, 1);
	fixture_peers_lose();
	look(LIMIT_MS - 1);
	assert_true(lingers());
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_peer_lost(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	look(1);
	assert_false(lingers());
	comm = other;
	other = fixture_comm_open(false);
	fixture_post(comm, 8);
	fixture_sends_complete();
	mesh_comm_close(comm);
	assert_false(lingers());
	fixture_comm_close(other);
}

/* NCCL closes while no path leads there: the first one that is back carries the word. */
static void test_closed_without_path(void **state)
{
	(void)state;
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	other = fixture_comm_open(false);
	requests[0] = fixture_post(comm, ROOM);
	message_arrives(0);
	assert_int_equal(fixture_test(requests[0]), ROOM);
	fixture_sends_complete();
	fixture_peers_lose();
	mesh_comm_close(comm);
	assert_true(lingers());
	fixture_frame(MESH_FRAME_CLOSED); /* only here: a lost peer has no connection */
	mesh_lock_take(&fixture.setup.process.lock);
	fixture.peers[0].state = MESH_PEER_UP;
	mesh_comm_recover_soon(comm);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.sent, 1);
	sender_answers();
	assert_false(lingers());
	fixture_comm_close(other);
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
		TEST(test_closed_ends_the_doubt),
		TEST(test_closed_ends_every_doubt),
		TEST(test_closed_is_unread),
		TEST(test_doubt_after_closed),
		TEST(test_loss_after_closed),
		TEST(test_closed_claims_too_much),
		TEST(test_close_does_not_end_the_doubt),
		cmocka_unit_test(test_closed_counts),
		TEST(test_failed_receiver_answers),
		TEST(test_receiver_lingers),
		TEST(test_receiver_that_closes_last),
		TEST(test_receiver_without_recovery),
		TEST(test_acknowledgement_is_enough),
		TEST(test_acknowledgement_on_verbs),
		TEST(test_no_path_is_left),
		TEST(test_closed_without_path),
	};

	fake_clock_us = 1000000; /* no time is 0, which means never */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
