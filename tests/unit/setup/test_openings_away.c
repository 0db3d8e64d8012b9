/* SPDX-License-Identifier: Apache-2.0 */
/* test_openings_away.c - no NIC has a carrier when it is opened: the listener waits for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/threads.h"
#include "system/carrier.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/openings.h"
#include "setup/setup.h"

#include "namespace.h"

#define NICS 2
/* Whatever takes longer than this hangs. */
#define LIMIT_S 60

static struct mesh_net *net;
static struct mesh_listener *listeners[NICS];

static void carriers_await(bool up)
{
	int dev;

	for (dev = 0; dev < NICS; dev++) {
		namespace_ip("link set x%d %s", dev, up ? "up" : "down");
		while (mesh_carrier_is_up(net->process->nics[dev]) != up)
			usleep(1000);
	}
}

static void accepts_wait(void)
{
	struct mesh_comm *comm;
	int dev;

	for (dev = 0; dev < NICS; dev++) {
		assert_int_equal(mesh_listener_accept(listeners[dev], &comm), 0);
		assert_null(comm);
	}
}

/* As connect does: peers come when the cables are back, and open the NICs. */
static void test_accept_waits_for_a_carrier(void **state)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	int dev;

	(void)state;
	alarm(LIMIT_S);
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(net->process->num_nics, NICS);
	carriers_await(false);
	for (dev = 0; dev < NICS; dev++) {
		assert_int_equal(mesh_net_listen(net, dev, handle, &listeners[dev]), 0);
		mesh_lock_take(&net->process->lock);
		mesh_opening_need(net->process, dev, false); /* for a peer that connects */
		mesh_lock_release(&net->process->lock);
		mesh_threads_await();
		assert_null(net->process->domains[dev]);
	}
	accepts_wait();
	carriers_await(true);
	accepts_wait();
	for (dev = 0; dev < NICS; dev++)
		mesh_listener_close(listeners[dev]);
	mesh_net_close(net);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accept_waits_for_a_carrier),
	};

	if (!namespace_enter())
		return 77;
	setenv("NCCL_MESH_MAX_PATHS", "1", 1); /* none is opened at init */
	namespace_nics(NICS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
