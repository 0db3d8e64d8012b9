/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_connect_away.c - connect waits for a carrier, also where neighbours might relay, and where
 * the NIC is open.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/threads.h"
#include "nic/addr.h"
#include "system/carrier.h"
#include "setup/connect.h"
#include "setup/connecting.h"
#include "setup/net.h"
#include "setup/openings.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "namespace.h"

/* Whatever takes longer than this hangs. */
#define LIMIT_S 60
/* A connection without any neighbour is given up before it is so old. */
#define OLD_MS 10000

static struct mesh_net *net;
static uint8_t handle[MESH_HANDLE_BYTES];

static void carrier_await(bool up)
{
	namespace_ip("link set x0 %s", up ? "up" : "down");
	while (mesh_carrier_is_up(net->process->nics[0]) != up)
		usleep(1000);
}

/* A listener of another node, which nobody answers for. */
static void handle_make(void)
{
	struct mesh_handle other = {
		.node_id = net->process->node_id + 1,
		.cookie = 1,
		.listen_id = 1,
		.control_port = 1,
		.total_nics = 1,
		.node = "other",
		.num_endpoints = 1,
		.endpoints = {{.provider = MESH_PROVIDER_TCP, .speed_mbps = 10000}},
	};

	assert_int_equal(mesh_addr_parse("10.1.0.2/24", &other.endpoints[0].addr), 0);
	assert_int_equal(mesh_handle_encode(&other, handle), 1);
}

/* Calls connect until it asks relays, or the node itself. */
static void connect_await(bool relays)
{
	const struct mesh_connect *connect;
	struct mesh_comm *comm;
	bool done = false;

	while (!done) {
		assert_int_equal(mesh_net_connect(net, 0, handle, &comm), 0);
		assert_null(comm);
		mesh_lock_take(&net->process->lock);
		connect = LIST_FIRST(&net->setup->connects);
		done = relays ? connect->relay != NULL : !connect->relay && connect->num_peers;
		mesh_lock_release(&net->process->lock);
	}
}

static enum mesh_dev_state dev_state(int dev)
{
	enum mesh_dev_state state;

	mesh_lock_take(&net->process->lock);
	state = net->process->dev_states[dev];
	mesh_lock_release(&net->process->lock);
	return state;
}

static void net_start(void)
{
	alarm(LIMIT_S);
	log_capture_start();
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(net->process->num_nics, 2);
	handle_make();
}

static int setup(void **state)
{
	(void)state;
	net_start();
	carrier_await(false);
	return 0;
}

/* An earlier connection has needed the NIC. */
static int setup_open(void **state)
{
	(void)state;
	net_start();
	mesh_lock_take(&net->process->lock);
	mesh_opening_need(net->process, 0, false);
	mesh_lock_release(&net->process->lock);
	mesh_threads_await();
	assert_int_equal(dev_state(0), MESH_DEV_OPEN);
	return 0;
}

static int setup_open_away(void **state)
{
	setup_open(state);
	carrier_await(false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	carrier_await(true); /* libfabric leaves out a NIC that the kernel does not call running */
	mesh_net_close(net);
	log_capture_stop();
	alarm(0);
	return 0;
}

static void test_carrier_comes_back(void **state)
{
	struct mesh_connect *connect;
	struct mesh_comm *comm;
	uint64_t whole_s;
	char left[64];

	(void)state;
	connect_await(true);
	mesh_lock_take(&net->process->lock);
	connect = LIST_FIRST(&net->setup->connects);
	connect->started_ms -= OLD_MS;
	whole_s = (connect->deadline_ms - connect->started_ms) / 1000;
	mesh_lock_release(&net->process->lock);
	assert_int_equal(mesh_net_connect(net, 0, handle, &comm), 0);
	carrier_await(true);
	connect_await(false);
	assert_true(log_captured(MESH_LOG_WARN, "n0 has no carrier"));
	snprintf(left, sizeof(left), "giving up in %llu s", (unsigned long long)whole_s);
	assert_false(log_captured(MESH_LOG_WARN, left)); /* that is the time in all */
	assert_int_equal(mesh_net_connect(net, 0, handle, &comm), 0);
	assert_int_equal(log_captured_times(MESH_LOG_WARN, "still connecting from n0 to "), 2);
}

/* The opening fails, and the carrier is back before the attempt has looked at the result. */
static void test_carrier_is_back_at_once(void **state)
{
	struct mesh_process *process = net->process;
	struct mesh_comm *comm;

	(void)state;
	assert_int_equal(mesh_net_connect(net, 0, handle, &comm), 0);
	mesh_lock_take(&process->lock);
	while (process->dev_states[0] != MESH_DEV_FAILED) {
		mesh_lock_release(&process->lock);
		mesh_net_connect(net, 0, handle, &comm);
		mesh_lock_take(&process->lock);
	}
	carrier_await(true);
	mesh_lock_release(&process->lock);
	connect_await(false);
}

/* It is lost while the other node is dialled, which does not answer. */
static void test_carrier_is_lost_meanwhile(void **state)
{
	(void)state;
	connect_await(false);
	carrier_await(false);
	connect_await(true);
	carrier_await(true);
	connect_await(false);
}

/* The error names the NIC that has no carrier: the nodes do share a subnet. */
static void test_no_carrier_in_time(void **state)
{
	struct mesh_connect *connect;
	struct mesh_comm *comm;

	(void)state;
	connect_await(true);
	mesh_lock_take(&net->process->lock);
	connect = LIST_FIRST(&net->setup->connects);
	connect->deadline_ms = connect->started_ms;
	mesh_lock_release(&net->process->lock);
	assert_int_equal(mesh_net_connect(net, 0, handle, &comm), -ETIMEDOUT);
	assert_true(log_captured(MESH_LOG_WARN, "gave up connecting to node other"));
	assert_true(log_captured(MESH_LOG_WARN,
				 "libfabric has not opened n0, which leads there; no "
				 "neighbour relays, asked for "));
	assert_true(log_captured(MESH_LOG_WARN, "The NIC has no carrier: is its cable plugged in"));
	assert_int_equal(log_captured_times(MESH_LOG_WARN, "no common subnet"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_carrier_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carrier_is_back_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_carrier_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carrier_comes_back, setup_open_away, teardown),
		cmocka_unit_test_setup_teardown(test_no_carrier_in_time, setup_open_away, teardown),
		cmocka_unit_test_setup_teardown(test_carrier_is_lost_meanwhile, setup_open,
						teardown),
	};

	if (!namespace_enter())
		return 77;
	setenv("NCCL_MESH_RELAY", "any", 1);
	/* Fewer than there are NICs, so that none is opened at init. */
	setenv("NCCL_MESH_MAX_PATHS", "1", 1);
	namespace_nics(2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
