/* SPDX-License-Identifier: Apache-2.0 */
/* test_guest.c - a process that only measures: it asks relays, and relays for nobody. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "setup/connect.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "wire/handle.h"

#define JOB 0x1234567890abcdefull
#define CONNECT_S 7

static struct mesh_net *guest;

/* With relays turned off nothing is opened, so that the next attempt may succeed. */
static void test_relays_are_off(void **state)
{
	(void)state;
	setenv("NCCL_MESH_RELAY", "off", 1);
	assert_int_equal(mesh_net_guest_open(JOB, CONNECT_S, &guest), -EPERM);
	unsetenv("NCCL_MESH_RELAY");
	setenv("NCCL_MESH_NEIGHBOURS", "off", 1);
	assert_int_equal(mesh_net_guest_open(JOB, CONNECT_S, &guest), -EPERM);
	unsetenv("NCCL_MESH_NEIGHBOURS");
	assert_int_equal(mesh_net_guest_open(JOB, CONNECT_S, &guest), 0);
}

/* It asks for the job that it was given, counts as no rank of it, and nobody asks it to relay. */
static void test_what_others_hear(void **state)
{
	struct mesh_process *process = guest->process;
	struct mesh_neighbour_self self = {.node_id = 0};

	(void)state;
	mesh_process_lock(process);
	if (guest->setup->neighbours)
		self = guest->setup->neighbours->self;
	mesh_process_unlock(process);
	assert_true(self.node_id == process->node_id);
	assert_true(self.job == JOB);
	assert_int_equal(self.process.job, 0);
	assert_int_equal(self.process.control_port, 0);
	assert_int_equal(self.process.rank, 0);
	assert_int_equal(self.process.role, MESH_NEIGHBOUR_SERVICE);
	assert_false(mesh_neighbour_serves(&self.process, JOB));
	assert_int_equal(process->config.connect_timeout_s, CONNECT_S);
}

static void test_it_does_not_relay(void **state)
{
	struct mesh_process *process = guest->process;
	struct mesh_frame_hello hello = {.listen_id = MESH_LISTEN_RELAY,
					 .cookie = process->process_id};
	bool as_guest, as_service;
	uint64_t job;

	(void)state;
	mesh_process_lock(process);
	job = process->relay ? process->relay->job : 0;
	as_guest = mesh_relay_admits(process, &hello);
	process->role = MESH_PROCESS_SERVICE;
	as_service = mesh_relay_admits(process, &hello);
	process->role = MESH_PROCESS_GUEST;
	mesh_process_unlock(process);
	assert_true(job == JOB);
	assert_false(as_guest);
	assert_true(as_service);
}

/* An address that shares its subnet is no candidate: a handle may come from a stranger. */
static void test_it_connects_over_relays_only(void **state)
{
	struct mesh_handle handle = {
		.node_id = guest->process->node_id + 1,
		.cookie = 5,
		.control_port = 9,
		.total_nics = 1,
		.num_endpoints = 1,
		.endpoints = {{.provider = MESH_PROVIDER_TCP}},
	};
	const struct mesh_connect *connect;
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_comm *comm;
	int num_candidates = -1, num_peers = -1;
	bool relayed = false;

	(void)state;
	handle.endpoints[0].addr = mesh_net_nic(0)->source;
	assert_int_equal(mesh_handle_encode(&handle, bytes), 1);
	assert_int_equal(mesh_net_connect(guest, 0, bytes, &comm), 0);
	assert_null(comm);
	mesh_process_lock(guest->process);
	connect = LIST_FIRST(&guest->setup->connects);
	if (connect) {
		num_candidates = connect->choice.num_candidates;
		num_peers = connect->num_peers;
		relayed = connect->relay;
	}
	mesh_process_unlock(guest->process);
	assert_int_equal(num_candidates, 0);
	assert_int_equal(num_peers, 0);
	assert_true(relayed);
}

static void test_one_for_each_process(void **state)
{
	struct mesh_net *other;

	(void)state;
	assert_int_equal(mesh_net_guest_open(JOB, CONNECT_S, &other), -EBUSY);
	assert_int_equal(mesh_net_relay_open(&other), -EBUSY);
	mesh_net_close(guest);
	assert_int_equal(mesh_net_guest_open(JOB, CONNECT_S, &other), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relays_are_off),
		cmocka_unit_test(test_what_others_hear),
		cmocka_unit_test(test_it_does_not_relay),
		cmocka_unit_test(test_it_connects_over_relays_only),
		cmocka_unit_test(test_one_for_each_process),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_STATS_DIR", "", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
