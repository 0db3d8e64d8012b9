/* SPDX-License-Identifier: Apache-2.0 */
/* test_node.c - how soon the engine wakes by itself: only while something has a deadline. */
#include "setup/connect.h"
#include "setup/work.h"

#include "comm_fixture.h"

/* NCCL's tables up to v10 never come back for an attempt that they gave up. */
static void test_connect_given_up(void **state)
{
	struct mesh_connect connect = {.state = MESH_CONNECT_PEERS};
	struct mesh_process *process = &fixture.setup.process;

	(void)state;
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_setup_work.timeout(process), -1);
	LIST_INSERT_HEAD(&fixture.setup.connects, &connect, entry);
	assert_int_equal(mesh_setup_work.timeout(process), 20);
	connect.state = MESH_CONNECT_SENT;
	assert_int_equal(mesh_setup_work.timeout(process), 20);
	connect.state = MESH_CONNECT_FAILED;
	assert_int_equal(mesh_setup_work.timeout(process), -1);
	connect.state = MESH_CONNECT_DONE;
	assert_int_equal(mesh_setup_work.timeout(process), -1);
	LIST_REMOVE(&connect, entry);
	mesh_lock_release(&process->lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connect_given_up, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
