/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_questions.c - RESUMEs that a receiver answers once the last relay of a lost path has
 * reported, or cannot report any more.
 */
#include <string.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "transport/frames.h"
#include "transport/questions.h"
#include "transport/recovery.h"

#include "comm_fixture.h"

#define ROOM ((size_t)1 << 20)

static struct mesh_comm *comm;

static void question_comes(uint32_t seq, uint32_t round)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.resume.to_comm = comm_path(comm, 0).sink->id;
	frame.resume.seq = seq;
	frame.resume.round = round;
	frame.resume.dead = 1 << 1;
	frame.resume.ids[1] = comm_path(comm, 1).sink->id;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_resume_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* A receiver whose second path leads through a relay, which has not reported. */
static void relayed_open(void)
{
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	fixture_post(comm, ROOM);
	comm->paths[1].through_relay = true;
}

static void timers_run(void)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_lock_release(&process->lock);
}

/* A relay whose link is lost does not report any more: the answer waits no longer. */
static void test_question_without_relay(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	(void)state;
	relayed_open();
	question_comes(0, 1);
	timers_run();
	assert_int_equal(comm->paths[1].state, MESH_PATH_SUSPECT);
	assert_true(fixture_no_frame());
	mesh_lock_take(&process->lock);
	mesh_peer_lose(&fixture.peers[1], "its cable is gone");
	mesh_peer_bury(&fixture.peers[1]);
	mesh_lock_release(&process->lock);
	timers_run();
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.round, 1);
	timers_run();
	assert_true(fixture_no_frame()); /* it is answered once */
	fixture_comm_close(comm);
}

/* The link is made anew: what was lost there has been fenced. */
static void test_question_of_fenced_path(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	(void)state;
	relayed_open();
	question_comes(0, 1);
	mesh_lock_take(&process->lock);
	mesh_path_fenced(&comm->paths[1]);
	mesh_lock_release(&process->lock);
	timers_run();
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.round, 1);
	fixture_comm_close(comm);
}

/* A question that was asked before a later loss is late: its answer would mean nothing. */
static void test_question_that_is_late(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_frame frame;

	(void)state;
	relayed_open();
	question_comes(0, UINT32_MAX);
	question_comes(1, 1);
	question_comes(0, UINT32_MAX); /* the rounds are counted around */
	question_comes(2, 1);
	assert_true(fixture_no_frame());
	mesh_lock_take(&process->lock);
	mesh_path_drained(&comm->paths[1]);
	mesh_questions_answer(comm);
	mesh_lock_release(&process->lock);
	frame = fixture_frame(MESH_FRAME_HAVE);
	assert_int_equal(frame.have.round, 1);
	assert_int_equal(frame.have.seq, 1);
	frame = fixture_frame(MESH_FRAME_HAVE);
	assert_int_equal(frame.have.round, 1);
	assert_int_equal(frame.have.seq, 2);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_question_without_relay),
		TEST(test_question_of_fenced_path),
		TEST(test_question_that_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
