/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stuck_grant.c - a grant that the receiver has sent does not come: over RDMA its packets are
 * dropped, and no write is in flight that would show it.
 */
#include <errno.h>

#include "base/clock.h"
#include "transport/stall.h"

#include "comm_fixture.h"
#include "fake_clock.h"

#define LARGE ((size_t)64 << 10)

static struct mesh_comm *comm;

/* A sender waits for its grant, which the receiver has sent. Returns the path's state @after_ms. */
static enum mesh_path_state state_after(enum mesh_provider_id provider, int num_paths, int recovery,
					uint64_t after_ms)
{
	enum mesh_path_state found;
	void *state = NULL;

	assert_int_equal(fixture_setup(&state), 0);
	fixture.setup.process.config.recovery = (uint32_t)recovery;
	fixture.setup.process.config.dead_peer_timeout_s = 100;
	comm = fixture_open(provider, num_paths, true);
	fixture_post(comm, LARGE);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_tick(comm, mesh_clock_ms());
	mesh_stall_answered(comm, 0);
	fake_clock_us += after_ms * 1000;
	mesh_stall_tick(comm, mesh_clock_ms());
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, 0);
	found = comm->paths[0].state;
	fixture_comm_close(comm);
	assert_int_equal(fixture_teardown(&state), 0);
	return found;
}

static void test_link_is_given_up(void **state)
{
	(void)state;
	assert_int_equal(state_after(MESH_PROVIDER_VERBS_RXM, 1, 1, 2900), MESH_PATH_UP);
	assert_int_equal(state_after(MESH_PROVIDER_VERBS_RXM, 1, 1, 3000), MESH_PATH_SUSPECT);
}

/* Over tcp the kernel has it, and ASK sends it once more, as over another path. */
static void test_others_wait(void **state)
{
	(void)state;
	assert_int_equal(state_after(MESH_PROVIDER_TCP, 1, 1, 3000), MESH_PATH_UP);
	assert_int_equal(state_after(MESH_PROVIDER_VERBS_RXM, 2, 1, 3000), MESH_PATH_UP);
	assert_int_equal(state_after(MESH_PROVIDER_VERBS_RXM, 1, 0, 3000), MESH_PATH_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link_is_given_up),
		cmocka_unit_test(test_others_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
