/* SPDX-License-Identifier: Apache-2.0 */
/* test_reroutes.c - what a comm remembers when it looks for something else. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "setup/relay_try.h"
#include "setup/reroutes.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/route_wait.h"
#include "transport/stopped.h"
#include "wire/handle.h"

#include "comm_fixture.h"

static struct mesh_comm *comm;
static struct mesh_relay_try relay;
static bool stopped, lost; /* the relays of its paths are; one of them is */
static int looks;	   /* for a relay that may be asked */
static int walks;	   /* steps over the comms of the process */
static struct mesh_path_retry retry;
static const struct mesh_route in_use = {.num_relays = 1, .hops = {'q'}};

int __wrap_mesh_relay_try_open(struct mesh_process *process, const struct mesh_handle *handle,
			       int most, struct mesh_relay_try **made);
int __wrap_mesh_relay_try_open(struct mesh_process *process, const struct mesh_handle *handle,
			       int most, struct mesh_relay_try **made)
{
	(void)handle;
	(void)most;
	relay.process = process;
	*made = &relay;
	return 0;
}

void __wrap_mesh_relay_try_close(struct mesh_relay_try *closed);
void __wrap_mesh_relay_try_close(struct mesh_relay_try *closed)
{
	assert_ptr_equal(closed, &relay);
}

bool __wrap_mesh_relay_try_is_ready(struct mesh_relay_try *asked, uint64_t now_ms);
bool __wrap_mesh_relay_try_is_ready(struct mesh_relay_try *asked, uint64_t now_ms)
{
	(void)now_ms;
	looks++;
	asked->vain = true;
	return false;
}

struct mesh_comm *__real_mesh_comm_next(const struct mesh_process *process,
					const struct mesh_comm *previous);
struct mesh_comm *__wrap_mesh_comm_next(const struct mesh_process *process,
					const struct mesh_comm *previous);
struct mesh_comm *__wrap_mesh_comm_next(const struct mesh_process *process,
					const struct mesh_comm *previous)
{
	walks++;
	return __real_mesh_comm_next(process, previous);
}

struct mesh_path_retry *__wrap_mesh_path_retry_of(const struct mesh_path *path);
struct mesh_path_retry *__wrap_mesh_path_retry_of(const struct mesh_path *path)
{
	(void)path;
	return &retry;
}

const struct mesh_route *__wrap_mesh_path_relayed_route(const struct mesh_path *path);
const struct mesh_route *__wrap_mesh_path_relayed_route(const struct mesh_path *path)
{
	(void)path;
	return &in_use;
}

bool __wrap_mesh_comm_lacks_path(struct mesh_comm *of);
bool __wrap_mesh_comm_lacks_path(struct mesh_comm *of)
{
	(void)of;
	return lost;
}

bool __wrap_mesh_stopped_wants_route(const struct mesh_comm *of, uint64_t now_ms);
bool __wrap_mesh_stopped_wants_route(const struct mesh_comm *of, uint64_t now_ms)
{
	(void)of;
	(void)now_ms;
	return stopped;
}

static int setup(void **state)
{
	fixture_setup(state);
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	comm->handle = calloc(1, sizeof(*comm->handle));
	memset(&relay, 0, sizeof(relay));
	memset(&retry, 0, sizeof(retry));
	stopped = lost = false;
	looks = 0;
	mesh_lock_take(&comm->process->lock);
	return 0;
}

static int teardown(void **state)
{
	mesh_reroutes_close(comm->process);
	mesh_lock_release(&comm->process->lock);
	fixture_comm_close(comm);
	return fixture_teardown(state);
}

/* What is due at this time; returns how often a relay was looked for. */
static int runs(uint64_t now_ms)
{
	looks = 0;
	atomic_store(&comm->process->routeless, true);
	mesh_reroutes_tick(comm->process);
	mesh_timers_run(&comm->process->engine.timers, now_ms);
	return looks;
}

/* A trial that was not over when the relays ran again says nothing of the next one. */
static void test_trial_again(void **state)
{
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	stopped = lost = true;
	assert_int_equal(runs(now_ms + 1000), 1);
	stopped = false;
	assert_int_equal(runs(now_ms + 2000), 0); /* no path is down: nothing is due */
	stopped = true;
	assert_int_equal(runs(now_ms + 60000), 1);
}

/* Nor do those that have failed long ago. */
static void test_trials_failed(void **state)
{
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	stopped = lost = true;
	assert_int_equal(runs(now_ms + 1000), 1);
	assert_int_equal(runs(now_ms + 4000), 0); /* it has failed: a pause of 1 s */
	assert_int_equal(runs(now_ms + 4999), 0);
	stopped = false;
	assert_int_equal(runs(now_ms + 4999), 0);
	stopped = true;
	assert_int_equal(runs(now_ms + 4999), 1);
}

/* The process of a relay that has refused is remembered: else it is asked in each look. */
static void test_turns(void **state)
{
	struct mesh_path *path = &comm->paths[1];
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	mesh_comm_lock(comm);
	mesh_path_state_set(path, MESH_PATH_SUSPECT);
	mesh_path_state_set(path, MESH_PATH_DOWN);
	mesh_comm_unlock(comm);
	lost = true;
	assert_int_equal(runs(now_ms + 1000), 1);
	assert_int_equal(relay.beside.relays[0], 'q');
	relay.tried.num = 1;
	assert_int_equal(runs(retry.not_before_ms - 1), 0);
	assert_int_equal(runs(retry.not_before_ms), 1);
	assert_int_equal(relay.tried.num, 1);
}

/* Many comms look, each of them often: a look of one does not look at the others. */
static void test_no_walk(void **state)
{
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	stopped = lost = true;
	assert_int_equal(runs(now_ms + 1000), 1);
	walks = looks = 0;
	mesh_timers_run(&comm->process->engine.timers, now_ms + 2000);
	assert_int_equal(looks, 1);
	assert_int_equal(walks, 0);
}

/* The comm is freed meanwhile: nothing looks for it any longer. */
static void test_comm_is_freed(void **state)
{
	struct mesh_process *process = comm->process;
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	stopped = lost = true;
	assert_int_equal(runs(now_ms + 1000), 1);
	mesh_lock_release(&process->lock);
	fixture_comm_close(comm);
	comm = fixture_comm_open(true); /* perhaps at the same place in memory */
	mesh_lock_take(&process->lock);
	looks = 0;
	mesh_timers_run(&process->engine.timers, now_ms + 2000);
	assert_int_equal(looks, 0);
	assert_true(LIST_EMPTY(&fixture.setup.reroutes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_trial_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trials_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_comm_is_freed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
