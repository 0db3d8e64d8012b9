/* SPDX-License-Identifier: Apache-2.0 */
/* test_node.c - how soon the engine wakes by itself: only while something is in progress. */
#include "setup/start.h"

#include "comm_fixture.h"

static void wakes_after(int timeout)
{
	assert_int_equal(mesh_setup_work.timeout(&fixture.setup.process), timeout);
}

TEST_WITH(sleep, fixture_setup, fixture_teardown)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	wakes_after(-1);
	atomic_store(&process->engine.awake, true);
	wakes_after(20);
	atomic_store(&process->engine.awake, false);
	mesh_lock_release(&process->lock);
}
