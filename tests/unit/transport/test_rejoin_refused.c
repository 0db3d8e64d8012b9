/* SPDX-License-Identifier: Apache-2.0 */
/* test_rejoin_refused.c - an attempt to reach a lost link is refused, or a JOIN: who has ended? */
#include <errno.h>

#include "base/clock.h"
#include "control/peer_life.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"

#include "comm_fixture.h"

#define PROCESS_ID 0x1234

static struct mesh_comm *comm;

static void timers_run(uint64_t after_ms)
{
	mesh_timers_run(&fixture.setup.process.engine.timers, mesh_clock_ms() + after_ms);
}

/* All links are lost. Takes process->lock. */
static void links_lose(void)
{
	int i;

	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < FIXTURE_PATHS; i++) {
		fixture.peers[i].heard_ms = mesh_clock_ms();
		fixture_peer_enter(&fixture.peers[i], PROCESS_ID, 999);
	}
	for (i = 0; i < FIXTURE_PATHS; i++) {
		mesh_comm_lock(comm);
		mesh_path_suspect(&comm->paths[i], -ECONNRESET);
		mesh_comm_unlock(comm);
		mesh_comms_recover(&fixture.setup.process);
	}
}

static void links_open(void)
{
	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.config.recovery_timeout_s = 30;
	fixture_paths_open(MESH_PROVIDER_TCP, FIXTURE_PATHS);
}

static void comm_cut(void)
{
	links_open();
	comm = fixture_comm_open(true);
	links_lose();
}

/* The attempt is refused because its HELLO named no listener. */
static void attempt_refuse(uint64_t named)
{
	struct mesh_peer *attempt;

	timers_run(0);
	LIST_FOREACH(attempt, &fixture.setup.process.peers, entry) {
		attempt->refusal = MESH_REFUSAL_COOKIE;
		attempt->sent_cookie = named;
	}
	assert_false(LIST_EMPTY(&fixture.setup.process.peers));
	timers_run(1000);
}

static int teardown(void **state)
{
	struct mesh_peer *attempt;

	mesh_rejoins_close(&fixture.setup.process);
	while ((attempt = LIST_FIRST(&fixture.setup.process.peers)))
		mesh_peer_free(attempt);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
	return fixture_teardown(state);
}

static void test_own_name_is_refused(void **state)
{
	(void)state;
	comm_cut();
	attempt_refuse(PROCESS_ID);
	assert_failed(comm, -ECONNRESET, "its process has ended");
}

/*
 * A connection that NCCL makes shares the attempt, and its listener was closed: that says nothing
 * of the process.
 */
static void test_listener_is_refused(void **state)
{
	(void)state;
	comm_cut();
	attempt_refuse(PROCESS_ID + 1);
	assert_int_equal(*comm_inside(comm).error, 0);
}

/* Each NIC has its own ids: that of a comm on one link may be another comm's on the other. */
static void test_one_comm_has_ended(void **state)
{
	struct mesh_frame_refuse refuse = {.refusal = MESH_REFUSAL_ENDED};
	struct mesh_comm *other;
	struct mesh_peer again;

	(void)state;
	links_open();
	mesh_domain_lock(fixture.domains[1]);
	fixture.domains[1]->next_sink = 2; /* the other one begins with 1 */
	mesh_domain_unlock(fixture.domains[1]);
	comm = fixture_comm_open(false);
	other = fixture_comm_open(false);
	assert_int_equal(other->paths[0].sink.id, comm->paths[1].sink.id);
	links_lose();
	again = (struct mesh_peer){
		.process = &fixture.setup.process,
		.domain = fixture.domains[1],
		.address = fixture.peers[1].address,
		.process_id = PROCESS_ID,
	};
	refuse.comm = comm->paths[1].sink.id;
	assert_true(mesh_rejoin_refused(&again, &refuse));
	assert_int_equal(*comm_inside(other).error, 0);
	assert_failed(comm, -ECONNRESET, "had ended a connection meanwhile");
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(other);
	mesh_lock_take(&fixture.setup.process.lock);
}

/* Each attempt comes as far as @state. */
static void attempts_stop(enum mesh_peer_state state)
{
	struct mesh_peer *attempt;

	assert_false(LIST_EMPTY(&fixture.setup.process.peers));
	LIST_FOREACH(attempt, &fixture.setup.process.peers, entry) {
		attempt->state = state;
		mesh_engine_timer_cancel(&fixture.setup.process.engine, &attempt->timer);
	}
}

/* A process whose kernel takes connections, and which says nothing, is stopped: its comms wait. */
static void test_process_is_stopped(void **state)
{
	uint64_t ms;

	(void)state;
	comm_cut();
	timers_run(0);
	for (ms = 20000; ms <= 100000; ms += 20000) {
		attempts_stop(MESH_PEER_HELLO);
		timers_run(ms);
		assert_int_equal(*comm_inside(comm).error, 0);
	}
	attempts_stop(MESH_PEER_RETRY); /* its kernel does not answer either */
	timers_run(129000);
	assert_int_equal(*comm_inside(comm).error, 0);
	timers_run(145000);
	assert_failed(comm, -ETIMEDOUT, "has not come back over any path for 30 s");
}

/* No kernel takes the connections of the attempts: since when, in milliseconds from now. */
static void attempts_refuse(uint64_t after_ms)
{
	struct mesh_peer *attempt;

	timers_run(0);
	attempts_stop(MESH_PEER_RETRY);
	LIST_FOREACH(attempt, &fixture.setup.process.peers, entry)
		attempt->first_refused_ms = mesh_clock_ms() + after_ms;
}

/* A firewall refuses for a moment: that says nothing of the process. */
static void test_refused_for_a_moment(void **state)
{
	(void)state;
	comm_cut();
	attempts_refuse(0);
	timers_run(1900);
	assert_int_equal(*comm_inside(comm).error, 0);
	timers_run(3000);
	assert_failed(comm, -ECONNRESET, "its process has ended");
}

/* One of the links answers nothing, or has refused for a moment only. */
static void test_one_link_does_not_refuse(void **state)
{
	struct mesh_peer *attempt;

	(void)state;
	comm_cut();
	attempts_refuse(0);
	attempt = LIST_FIRST(&fixture.setup.process.peers);
	attempt->first_refused_ms = 0;
	timers_run(5000);
	assert_int_equal(*comm_inside(comm).error, 0);
	attempt->first_refused_ms = mesh_clock_ms() + 8000;
	timers_run(9000);
	assert_int_equal(*comm_inside(comm).error, 0);
	attempt->first_refused_ms = 0;
	fixture.setup.process.nics_away = 1u << attempt->dev;
	timers_run(9500);
	assert_failed(comm, -ECONNRESET, "its process has ended");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_own_name_is_refused),	 TEST(test_listener_is_refused),
		TEST(test_one_comm_has_ended),	 TEST(test_process_is_stopped),
		TEST(test_refused_for_a_moment), TEST(test_one_link_does_not_refuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
