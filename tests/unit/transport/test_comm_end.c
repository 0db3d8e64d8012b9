/* SPDX-License-Identifier: Apache-2.0 */
/* test_comm_end.c - the two ends of a comm: the table, and the events that change them. */
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

#include "setup/setup.h"
#include "transport/answer.h"
#include "transport/comm.h"
#include "transport/comm_end.h"

#include "log_capture.h"

#define OPEN MESH_END_OPEN
#define CLOSING MESH_END_CLOSING
#define CLOSED MESH_END_CLOSED
#define UNCLEAN MESH_END_UNCLEAN
#define CUT MESH_END_CUT
#define STATES MESH_END_STATES

static struct mesh_process process;
static struct mesh_peer peer;
static struct mesh_comm comm;
static struct mesh_path first_path;

static struct mesh_peer *kind_peer(const struct mesh_path *path)
{
	(void)path;
	return &peer;
}

static const struct mesh_path_kind kind = {.peer = kind_peer};

/* A sending comm without paths, except for the peer that its frames would be sent to. */
static int setup(void **state)
{
	(void)state;
	memset(&process, 0, sizeof(process));
	memset(&peer, 0, sizeof(peer));
	memset(&comm, 0, sizeof(comm));
	mesh_lock_init(&process.lock);
	mesh_lock_init(&comm.lock);
	process.counters = &process.own_counters;
	peer.process = &process;
	peer.watch.fd = -1;
	comm.process = &process;
	comm.sending = true;
	comm.paths = &first_path;
	first_path.kind = &kind;
	log_capture_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_capture_stop();
	mesh_lock_destroy(&comm.lock);
	mesh_lock_destroy(&process.lock);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const bool may_follow[STATES][STATES] = {
	[OPEN] = {[CLOSING] = true, [CLOSED] = true, [UNCLEAN] = true, [CUT] = true},
	[CLOSING] = {[CLOSED] = true, [UNCLEAN] = true, [CUT] = true},
	[CLOSED] = {[UNCLEAN] = true, [CUT] = true},
	[UNCLEAN] = {[CUT] = true},
};

static void step(enum mesh_end from, enum mesh_end to)
{
	comm.peer_end = comm.own_end = from;
	mesh_lock_take(&comm.lock);
	mesh_comm_end_set(&comm, &comm.peer_end, to);
	mesh_comm_end_set(&comm, &comm.own_end, to);
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
			assert_int_equal(comm.own_end, to);
		}
	}
	assert_true(log_captured(MESH_LOG_TRACE, "our end of the connection: closed -> unclean"));
}

#ifndef NDEBUG
static bool step_aborts(enum mesh_end from, enum mesh_end to)
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
	int theirs, own;

	(void)state;
	for (theirs = 0; theirs < STATES; theirs++) {
		for (own = 0; own < STATES; own++) {
			comm.peer_end = theirs;
			comm.own_end = own;
			assert_int_equal(mesh_comm_peer_is_over(&comm),
					 theirs != OPEN && theirs != CLOSING);
			assert_int_equal(mesh_comm_peer_asks(&comm),
					 theirs != OPEN && own <= CLOSING);
		}
	}
}

/* ---- what happens --------------------------------------------------------------------------- */

static void on_close(void)
{
	mesh_comm_close_came(&comm);
}

static void on_closed(void)
{
	const struct mesh_frame_closed frame = {.sent = 7, .writes = 5};

	mesh_comm_closed_came(&comm, &frame);
}

static void on_closed_unclean(void)
{
	const struct mesh_frame_closed frame = {.sent = 7, .writes = 5, .unclean = 1};

	mesh_comm_closed_came(&comm, &frame);
}

static void on_loss(void)
{
	mesh_comm_peer_lost(&comm);
}

/* None of our operations is in flight, so the answer is sent, if one is due. */
static void on_drained(void)
{
	comm.unfinished = 0;
	mesh_comm_tick(&comm);
	comm.unfinished = 1;
}

/* Whatever a peer sends, and in whatever order: there is a state for it. */
static void test_events(void **state)
{
	static const struct {
		void (*happens)(void);
		enum mesh_end peer[STATES], own[STATES]; /* by the peer's state before */
	} events[] = {
		{on_close,
		 {CLOSING, CLOSING, CLOSED, UNCLEAN, CUT},
		 {CLOSING, CLOSING, CLOSING, CLOSING, CLOSING}},
		{on_closed,
		 {CLOSED, CLOSED, CLOSED, UNCLEAN, CUT},
		 {CLOSING, CLOSING, CLOSING, CLOSING, CLOSING}},
		{on_closed_unclean,
		 {UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN, CUT},
		 {CLOSING, CLOSING, CLOSING, CLOSING, CLOSING}},
		{on_loss,
		 {UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN, CUT},
		 {UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN, UNCLEAN}},
		{on_drained,
		 {OPEN, CLOSING, CLOSED, UNCLEAN, CUT},
		 {OPEN, CLOSED, CLOSED, CLOSED, CLOSED}},
	};
	size_t i;
	int from;

	(void)state;
	comm.unfinished = 1;
	mesh_lock_take(&process.lock);
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		for (from = 0; from < STATES; from++) {
			comm.peer_end = from;
			comm.own_end = OPEN;
			events[i].happens();
			assert_int_equal(comm.peer_end, events[i].peer[from]);
			assert_int_equal(comm.own_end, events[i].own[from]);
		}
	}
	mesh_lock_release(&process.lock);
}

/* Only the first counts are used. */
static void test_counts_come_once(void **state)
{
	const struct mesh_frame_closed other = {.sent = 9, .writes = 9, .unclean = 1};

	(void)state;
	mesh_lock_take(&process.lock);
	on_closed();
	mesh_comm_closed_came(&comm, &other);
	assert_int_equal(comm.peer_sent, 7);
	assert_int_equal(comm.peer_writes, 5);
	assert_int_equal(comm.peer_end, UNCLEAN);
	mesh_lock_release(&process.lock);
}

/* A peer that repeats a frame does not prolong the wait. */
static void test_limit_counts_from_the_first(void **state)
{
	const uint64_t now_ms = 1000000, limit_ms = 3000;

	(void)state;
	process.config.dead_peer_timeout_s = limit_ms / 1000;
	comm.unfinished = 1;
	mesh_lock_take(&process.lock);
	assert_int_equal(mesh_comms_asked_timeout(&process, now_ms), -1);
	on_close();
	assert_true(comm.peer_end_ms > 0);
	comm.peer_end_ms = now_ms;
	on_close();
	assert_int_equal(comm.peer_end_ms, now_ms);
	assert_int_equal(mesh_comms_asked_timeout(&process, now_ms), 0);
	assert_int_equal(mesh_comms_asked_timeout(&process, now_ms + limit_ms), 0);
	assert_int_equal(mesh_comms_asked_timeout(&process, now_ms + limit_ms + 1), 20);
	on_drained();
	assert_int_equal(mesh_comms_asked_timeout(&process, now_ms), -1);
	mesh_lock_release(&process.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_legal_steps),
#ifndef NDEBUG
		TEST(test_other_steps),
#endif
		TEST(test_questions),	     TEST(test_events),
		TEST(test_counts_come_once), TEST(test_limit_counts_from_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
