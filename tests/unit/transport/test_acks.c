/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_acks.c - the receiver's word for what it has, in place of the provider's acknowledgement:
 * when a sender waits for it, and what it does when the path is lost before. test_acks_said.c has
 * the receiving end.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/sink.h"
#include "transport/answer.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/request.h"
#include "transport/stall.h"

#include "acks_fixture.h"
#include "fake_clock.h"
#include "log_capture.h"

static bool kernel_has; /* the peer's kernel all that was sent */

bool __wrap_mesh_comm_is_acknowledged(const struct mesh_comm *of, uint64_t since_ms,
				      uint64_t now_ms);
bool __wrap_mesh_comm_is_acknowledged(const struct mesh_comm *of, uint64_t since_ms,
				      uint64_t now_ms)
{
	(void)of;
	(void)since_ms;
	(void)now_ms;
	return kernel_has;
}

static int begin(void **state)
{
	kernel_has = true;
	return acks_setup(state);
}

static int end(void **state)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	return fixture_teardown(state);
}

static bool last_waits_for_delivery(void)
{
	return fake.writes.posts[fake.writes.num - 1].flags & FI_DELIVERY_COMPLETE;
}

/* The receiver says that its first @count messages are complete. */
static void acked(uint32_t count)
{
	fixture.acked = MESH_ACKED(count);
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, count + 8, NULL, 0);
	fixture.acked = 0;
}

/* ---- the sending end ------------------------------------------------------------------------- */

/* It needs no acknowledgement of the provider's, and is not done before the receiver's word. */
static void test_done_when_the_receiver_says_so(void **state)
{
	struct mesh_request *first, *second;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	first = fixture_post(comm, LARGE);
	second = fixture_post(comm, MOST);
	fixture_grant(comm, 0, 2, MOST);
	assert_int_equal(fake.writes.num, 2);
	assert_false(fake.writes.posts[0].flags & FI_DELIVERY_COMPLETE);
	assert_false(fake.writes.posts[1].flags & FI_DELIVERY_COMPLETE);
	fixture_writes_complete(1);
	assert_false(fixture_is_done(first));
	acked(0);
	assert_false(fixture_is_done(first));
	fixture.acked = MESH_ACKED(1);
	fixture_grant(comm, 2, 1, MOST);
	assert_true(fixture_is_done(first));
	acked(2); /* it may come before the provider has reported that the socket has it */
	assert_false(fixture_is_done(second));
	fixture_writes_complete(1);
	assert_true(fixture_is_done(second));
	fixture_comm_close(comm);
}

/* A message may be written before an earlier one, which has no grant yet. */
static void test_out_of_order(void **state)
{
	struct mesh_request *first, *second;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fake.writes_end_with = -1;
	first = fixture_post(comm, LARGE);
	second = fixture_post(comm, LARGE);
	fixture_grant(comm, 1, 1, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_poll();
	assert_int_equal(mesh_immediate_decode(fake.writes.posts[0].data).seq, 1);
	acked(2);
	assert_true(fixture_is_done(first));
	assert_true(fixture_is_done(second));
	fixture_comm_close(comm);
}

/* What one word says of the messages, of which it has seven bits. */
static void test_words_wrap(void **state)
{
	struct mesh_request *request;
	uint32_t seq;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fake.writes_end_with = -1;
	for (seq = 0; seq < 300; seq++) {
		request = fixture_post(comm, LARGE);
		fixture_grant(comm, seq, 1, LARGE);
		fixture_poll();
		acked(seq);				 /* an earlier one, once more */
		acked(seq - MESH_COMM_REQUESTS);	 /* older ones */
		acked(seq - 3 * MESH_COMM_REQUESTS + 2); /* nearly as far as seven bits reach */
		acked(seq + 2);				 /* and one that is not true */
		assert_false(fixture_is_done(request));
		acked(seq + 1);
		assert_true(fixture_is_done(request));
	}
	fixture_comm_close(comm);
}

/* Small messages between two large ones may be any number. */
static void test_done_after_many(void **state)
{
	const uint32_t many = 0x80000100;
	struct mesh_request *request;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	mesh_comm_lock(comm);
	comm->next_seq = comm->send.first_pending = comm->send.peer_posted = many;
	mesh_comm_unlock(comm);
	request = fixture_post(comm, LARGE);
	fixture_grant(comm, many, 1, LARGE);
	fixture_writes_complete(1);
	assert_false(fixture_is_done(request));
	acked(many + 1);
	assert_true(fixture_is_done(request));
	fixture_comm_close(comm);
}

/* Where the provider has to acknowledge. */
static void test_others_wait_for_the_provider(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, MOST + 1);
	fixture_grant(comm, 0, 1, MOST + 1);
	assert_true(last_waits_for_delivery());
	fixture_writes_complete(1);
	acks_begin_anew(state);

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	assert_true(last_waits_for_delivery());
	fixture_writes_complete(1);
	acks_begin_anew(state);

	fixture.setup.process.config.segment_bytes = LARGE / 2;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.writes.num, 2);
	assert_true(last_waits_for_delivery());
	fixture_writes_complete(2);
	fixture_comm_close(comm);
}

/* Which paths carry such writes: the first one, and none that leads through a relay. */
static void test_paths(void **state)
{
	struct mesh_path path;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	assert_true(mesh_acks_suit(&comm->paths[0], LARGE));
	path = comm->paths[0];
	assert_false(mesh_acks_suit(&path, LARGE));
	comm->paths[0].through_relay = true;
	assert_false(mesh_acks_suit(&comm->paths[0], LARGE));
	comm->paths[0].through_relay = false;
	fixture_comm_close(comm);
}

/* Another path, which joined later, is lost: what the first one carries is not in doubt. */
static void test_another_path_is_lost(void **state)
{
	struct mesh_request *request;
	struct mesh_path other;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_writes_complete(1);
	other = comm->paths[0];
	mesh_comm_lock(comm);
	mesh_acks_doubt(&other);
	mesh_comm_unlock(comm);
	assert_int_equal(request->send.num_lost, 0);
	acked(1);
	assert_true(fixture_is_done(request));
	fixture_comm_close(comm);
}

static void path_lose(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_domain_lock(fixture.domains[0]);
	mesh_path_lost(&comm->paths[0]);
	mesh_domain_unlock(fixture.domains[0]);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void path_return(void)
{
	struct mesh_path *path = &comm->paths[0];

	mesh_lock_take(&fixture.setup.process.lock);
	assert_int_equal(mesh_sink_add(fixture.domains[0], &path->sink), 0);
	mesh_comm_lock(comm);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	mesh_path_accepted(path, FIXTURE_REMOTE_ID + 7, FIXTURE_REMOTE_TOKEN);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The receiver answers for one message. */
static void have(uint32_t seq, bool complete)
{
	const struct mesh_frame_have answer = {
		.seq = seq,
		.round = fixture_frame(MESH_FRAME_RESUME).resume.round,
		.complete = complete,
	};

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_came(comm, &answer);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* What has left and was not acknowledged is asked for, and written again if it is missing. */
static void test_in_doubt_when_the_path_is_lost(void **state)
{
	struct mesh_request *here, *missing;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	here = fixture_post(comm, LARGE);
	missing = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 2, LARGE);
	fixture_writes_complete(2);
	path_lose();
	assert_false(fixture_is_done(here));
	path_return();
	have(0, true);
	assert_true(fixture_is_done(here));
	assert_false(fixture_is_done(missing));
	assert_int_equal(fake.writes.num, 2);
	have(1, false);
	assert_int_equal(fake.writes.num, 3);
	assert_true(last_waits_for_delivery());
	acked(2); /* of an earlier life: it does not replace the acknowledgement */
	assert_false(fixture_is_done(missing));
	fixture_writes_complete(1);
	assert_true(fixture_is_done(missing));
	fixture_comm_close(comm);
}

/* Its connection was reset without an error, and the write with it: the receiver asks twice. */
static void test_receiver_asks_twice(void **state)
{
	struct mesh_request *request;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_asked(comm, 0); /* the provider still has it */
	fake_clock_us += 5000000;
	mesh_stall_asked(comm, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	fixture_writes_complete(1);
	kernel_has = false; /* it is on its way */
	mesh_stall_asked(comm, 0);
	fake_clock_us += 3000000;
	kernel_has = true;
	mesh_stall_asked(comm, 0);
	fake_clock_us += 1000000;
	mesh_stall_asked(comm, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	fake_clock_us += 2000000;
	mesh_stall_asked(comm, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_true(fixture_no_frame()); /* SENT would end the comm after a while */
	path_lose();
	path_return();
	have(0, false);
	assert_int_equal(fake.writes.num, 2);
	fixture_writes_complete(1);
	assert_true(fixture_is_done(request));
	fixture_comm_close(comm);
}

/* A comm that closes, or fails, before that leaves writes that its peer has to count. */
static void test_closed_says_that_some_are_on_their_way(void **state)
{
	struct mesh_frame closed;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_writes_complete(1);
	fixture_fail(comm, -ECANCELED);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_failure_report(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	closed = fixture_frame(MESH_FRAME_CLOSED);
	assert_int_equal(closed.closed.unacked, 1);
	assert_int_equal(closed.closed.writes, 1);
	assert_int_equal(closed.closed.unclean, 0);
	fixture_comm_close(comm);
}

/* The receiver closes: what its CLOSED counts is done, and the sender answers only then. */
static void test_receiver_closes(void **state)
{
	struct mesh_request *first, *second;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	first = fixture_post(comm, LARGE);
	second = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 2, LARGE);
	fixture_writes_complete(2);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_close_came(comm);
	assert_int_equal(*comm_inside(comm).error, 0);
	mesh_comm_closed_came(comm, &(struct mesh_frame_closed){.sent = 1});
	mesh_lock_release(&fixture.setup.process.lock);
	assert_true(fixture_is_done(first));
	assert_failed(comm, -EPIPE, "the receiver closed the connection");
	fixture_request_fails(second, -EPIPE);
	fixture_comm_close(comm);
}

/*
 * One that closes in mid-message says nothing more of it: it drops small messages, and those behind
 * one do not count. The sender does not wait for that word.
 */
static void test_receiver_closes_without_a_word(void **state)
{
	struct mesh_request *request;
	struct mesh_frame closed;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_writes_complete(1);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_close_came(comm);
	fixture_frame(MESH_FRAME_CLOSE);
	fake_clock_us += 100000;
	mesh_comm_tick(comm);
	assert_true(fixture_no_frame()); /* the word may be on its way */
	fake_clock_us += 100000;
	mesh_comm_tick(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	closed = fixture_frame(MESH_FRAME_CLOSED);
	assert_int_equal(closed.closed.unacked, 1);
	assert_failed(comm, -EPIPE, "the receiver closed the connection, or failed");
	fixture_request_fails(request, -EPIPE);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_done_when_the_receiver_says_so),
		TEST(test_out_of_order),
		TEST(test_words_wrap),
		TEST(test_done_after_many),
		TEST(test_others_wait_for_the_provider),
		TEST(test_paths),
		TEST(test_another_path_is_lost),
		TEST(test_in_doubt_when_the_path_is_lost),
		TEST(test_receiver_asks_twice),
		TEST(test_closed_says_that_some_are_on_their_way),
		TEST(test_receiver_closes),
		TEST(test_receiver_closes_without_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
