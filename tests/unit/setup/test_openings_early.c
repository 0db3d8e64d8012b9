/* SPDX-License-Identifier: Apache-2.0 */
/* test_openings_early.c - none of several NICs is opened before a connection needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "setup/listener.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "setup/threads.h"

#include "namespace.h"

#define NICS 3
/* Whatever takes longer than this hangs. */
#define LIMIT_S 60

static struct mesh_net *net;

static bool is_closed(int dev)
{
	bool closed;

	mesh_threads_await();
	mesh_lock_take(&net->process->lock);
	closed = net->process->dev_states[dev] == MESH_DEV_CLOSED;
	mesh_lock_release(&net->process->lock);
	return closed;
}

/* Not even the one that NCCL listens on: its peers may use another, and a cable may be away. */
static void test_several_stay_closed(void **state)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	int dev;

	(void)state;
	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(net->process->num_nics, NICS);
	for (dev = 0; dev < NICS; dev++)
		assert_true(is_closed(dev));
	assert_int_equal(mesh_net_listen(net, 1, handle, &listener), 0);
	for (dev = 0; dev < NICS; dev++)
		assert_true(is_closed(dev));
	mesh_listener_close(listener);
	mesh_net_close(net);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_stay_closed),
	};

	if (!namespace_enter())
		return 77;
	namespace_nics(NICS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
