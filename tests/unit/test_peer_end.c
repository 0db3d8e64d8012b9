/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_end.c - what a comm knows of its peer's end: the table, and who moves it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/comm.h"
#include "transport/node.h"

#include "log_capture.h"

#define OPEN MESH_PEER_END_OPEN
#define ASKED MESH_PEER_END_ASKED
#define ASKED_UNCLEAN MESH_PEER_END_ASKED_UNCLEAN
#define QUIET MESH_PEER_END_QUIET
#define UNCLEAN MESH_PEER_END_UNCLEAN
#define STATES MESH_PEER_END_STATES

static struct mesh_node node;
static struct mesh_peer peer;
static struct mesh_comm comm;

/* A sending comm without paths, but for the peer that its frames would go to. */
static int setup(void **state)
{
	(void)state;
	memset(&node, 0, sizeof(node));
	memset(&peer, 0, sizeof(peer));
	memset(&comm, 0, sizeof(comm));
	mesh_lock_init(&node.lock);
	mesh_lock_init(&comm.lock);
	node.counters = &node.own_counters;
	peer.node = &node;
	peer.watch.fd = -1;
	comm.node = &node;
	comm.sending = true;
	comm.paths[0].peer = &peer;
	log_capture_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_capture_stop();
	mesh_lock_destroy(&comm.lock);
	mesh_lock_destroy(&node.lock);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const bool may_follow[STATES][STATES] = {
	[OPEN] = {[ASKED] = true, [ASKED_UNCLEAN] = true, [QUIET] = true, [UNCLEAN] = true},
	[ASKED] = {[ASKED_UNCLEAN] = true, [QUIET] = true, [UNCLEAN] = true},
	[ASKED_UNCLEAN] = {[UNCLEAN] = true},
	[QUIET] = {[ASKED] = true, [ASKED_UNCLEAN] = true, [UNCLEAN] = true},
	[UNCLEAN] = {[ASKED_UNCLEAN] = true},
};

static void step(enum mesh_peer_end from, enum mesh_peer_end to)
{
	comm.peer_end = from;
	mesh_lock_take(&comm.lock);
	mesh_comm_peer_end_set(&comm, to);
	mesh_lock_release(&comm.lock);
}

static void test_legal_steps(void **state)
{
	int from, to;

	(void)state;
	for (from = 0; from < STATES; from++) {
		for (to = 0; to < STATES; to++) {
			if (!may_follow[from][to])
				continue;
			step(from, to);
			assert_int_equal(comm.peer_end, to);
		}
	}
	assert_true(log_captured(MESH_LOG_TRACE, "asked -> quiet"));
}

#ifndef NDEBUG
static bool step_aborts(enum mesh_peer_end from, enum mesh_peer_end to)
{
	const struct rlimit no_core = {0, 0};
	pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		alarm(20);
		step(from, to);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Where asserts are compiled in. */
static void test_other_steps(void **state)
{
	int from, to;

	(void)state;
	for (from = 0; from < STATES; from++) {
		for (to = 0; to < STATES; to++)
			assert_int_equal(step_aborts(from, to), !may_follow[from][to]);
	}
}
#endif

static void test_questions(void **state)
{
	static const struct {
		bool asks, over, unclean;
	} expected[STATES] = {
		[OPEN] = {false, false, false},	      [ASKED] = {true, true, false},
		[ASKED_UNCLEAN] = {true, true, true}, [QUIET] = {false, true, false},
		[UNCLEAN] = {false, true, true},
	};
	int i;

	(void)state;
	for (i = 0; i < STATES; i++) {
		comm.peer_end = i;
		assert_int_equal(mesh_comm_peer_asks(&comm), expected[i].asks);
		assert_int_equal(mesh_comm_peer_is_over(&comm), expected[i].over);
		assert_int_equal(mesh_comm_peer_is_unclean(&comm), expected[i].unclean);
	}
}

/* ---- what happens --------------------------------------------------------------------------- */

static void on_close(bool unclean)
{
	const struct mesh_frame_comm frame = {.sent = 7, .writes = 5, .unclean = unclean};

	mesh_comm_close_asked(&comm, &frame);
	assert_int_equal(comm.peer_sent, 7);
	assert_int_equal(comm.peer_writes, 5);
}

static void on_closed(bool unclean)
{
	const struct mesh_frame_comm frame = {.writes = 6, .unclean = unclean};

	mesh_comm_close_answered(&comm, &frame);
	assert_int_equal(comm.peer_writes, 6);
}

static void on_loss(bool unclean)
{
	(void)unclean;
	mesh_comm_peer_lost(&comm);
}

/* Nothing of ours is in flight any more, so the answer goes out, if one is due. */
static void on_drained(bool unclean)
{
	(void)unclean;
	comm.unfinished = 0;
	mesh_comm_tick(&comm);
	comm.unfinished = 1;
}

/* Whatever a peer sends, and in whatever order: there is a state for it. */
static void test_events(void **state)
{
	static const struct {
		void (*happens)(bool unclean);
		bool unclean;
		enum mesh_peer_end then[STATES]; /* by the state before */
	} events[] = {
		{on_close, false, {ASKED, ASKED, ASKED_UNCLEAN, ASKED, ASKED_UNCLEAN}},
		{on_close,
		 true,
		 {ASKED_UNCLEAN, ASKED_UNCLEAN, ASKED_UNCLEAN, ASKED_UNCLEAN, ASKED_UNCLEAN}},
		{on_closed, false, {QUIET, ASKED, ASKED_UNCLEAN, QUIET, UNCLEAN}},
		{on_closed, true, {UNCLEAN, ASKED_UNCLEAN, ASKED_UNCLEAN, UNCLEAN, UNCLEAN}},
		{on_loss, false, {UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN}},
		{on_drained, false, {OPEN, QUIET, UNCLEAN, QUIET, UNCLEAN}},
	};
	size_t i;
	int from;

	(void)state;
	comm.unfinished = 1;
	mesh_lock_take(&node.lock);
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		for (from = 0; from < STATES; from++) {
			comm.peer_end = from;
			events[i].happens(events[i].unclean);
			assert_int_equal(comm.peer_end, events[i].then[from]);
		}
	}
	mesh_lock_release(&node.lock);
}

/* A peer that says CLOSE over and over is not waited for any longer. */
static void test_asked_since(void **state)
{
	(void)state;
	comm.unfinished = 1;
	mesh_lock_take(&node.lock);
	on_close(false);
	assert_true(comm.peer_asked_ms > 0);
	comm.peer_asked_ms = 1;
	on_close(false);
	on_close(true);
	assert_int_equal(comm.peer_asked_ms, 1);
	on_drained(false);
	on_close(false);
	assert_true(comm.peer_asked_ms > 1);
	mesh_lock_release(&node.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_legal_steps),
#ifndef NDEBUG
		TEST(test_other_steps),
#endif
		TEST(test_questions),	TEST(test_events), TEST(test_asked_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
