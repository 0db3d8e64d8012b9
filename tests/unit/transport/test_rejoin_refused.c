/* SPDX-License-Identifier: Apache-2.0 */
/* test_rejoin_refused.c - an attempt to reach a lost link is refused: has the process ended? */
#include <errno.h>

#include "base/clock.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"

#include "comm_fixture.h"

#define PROCESS_ID 0x1234

static struct mesh_comm *comm;

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

static void timers_run(uint64_t after_ms)
{
	mesh_timers_run(&fixture.setup.process.engine.timers, mesh_clock_ms() + after_ms);
}

/* A sending comm that has lost both of its links. Takes process->lock. */
static void comm_cut(void)
{
	int i;

	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.config.recovery_timeout_s = 30;
	comm = fixture_open(MESH_PROVIDER_TCP, FIXTURE_PATHS, true);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < FIXTURE_PATHS; i++) {
		fixture.peers[i].timer.expired = nothing;
		fixture.peers[i].control_port = 999;
		fixture.peers[i].heard_ms = mesh_clock_ms();
		mesh_peer_process_set(&fixture.peers[i], PROCESS_ID);
		mesh_peer_index_add(&fixture.peers[i]);
	}
	for (i = 0; i < FIXTURE_PATHS; i++) {
		mesh_comm_lock(comm);
		mesh_path_suspect(&comm->paths[i], -ECONNRESET);
		mesh_comm_unlock(comm);
		mesh_comms_recover(&fixture.setup.process);
	}
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_own_name_is_refused),
		TEST(test_listener_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
