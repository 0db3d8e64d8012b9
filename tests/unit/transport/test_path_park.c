/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_park.c - a comm leaves a path whose link is taken out of use, if it can do without. */
#include "transport/path_park.h"
#include "transport/path_state.h"

#include "comm_fixture.h"

static struct mesh_comm *comm;

static int setup(void **state)
{
	fixture_setup(state);
	fixture.setup.process.config.recovery = 1;
	return 0;
}

static void park(int path, enum mesh_park_state state)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_path_park(&comm->paths[path], state);
	mesh_lock_release(&fixture.setup.process.lock);
}

static bool is_idle(int path)
{
	bool idle;

	mesh_lock_take(&fixture.setup.process.lock);
	idle = mesh_path_is_idle(&comm->paths[path]);
	mesh_lock_release(&fixture.setup.process.lock);
	return idle;
}

static int num_up(void)
{
	int num;

	mesh_comm_lock(comm);
	num = comm->num_up;
	mesh_comm_unlock(comm);
	return num;
}

static void test_leaves_and_comes_back(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	park(1, MESH_PARK_ASKED);
	assert_int_equal(num_up(), 1);
	assert_true(is_idle(1));
	assert_false(is_idle(0));
	park(0, MESH_PARK_ASKED); /* no link in use is left: it uses both */
	assert_int_equal(num_up(), 2);
	park(0, MESH_PARK_NONE);
	assert_int_equal(num_up(), 1);
	park(1, MESH_PARK_NONE);
	assert_int_equal(num_up(), 2);
	fixture_comm_close(comm);
}

/* Without recovery the comm fails with any of its paths: the cable must not be pulled. */
static void test_stays_without_recovery(void **state)
{
	(void)state;
	fixture.setup.process.config.recovery = 0;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	park(1, MESH_PARK_ASKED);
	assert_int_equal(num_up(), 2);
	assert_false(is_idle(1));
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_leaves_and_comes_back),
		TEST(test_stays_without_recovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
