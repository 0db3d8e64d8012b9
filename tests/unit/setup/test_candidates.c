/* SPDX-License-Identifier: Apache-2.0 */
/* test_candidates.c - when NICs that only stand in for others are used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "neighbours/neighbours.h"
#include "setup/candidates.h"
#include "setup/neighbour_hints.h"
#include "setup/setup.h"
#include "system/drain_marks.h"

static struct mesh_setup setup_state;
static struct mesh_process *const process = &setup_state.process;
static struct mesh_nic nics[2];
static struct mesh_handle handle;
static struct mesh_path_choice choice;

static void endpoint_make(struct mesh_endpoint_addr *endpoint, int nic, const char *addr,
			  enum mesh_provider_id provider)
{
	assert_int_equal(mesh_addr_parse(addr, &endpoint->addr), 0);
	endpoint->nic = (uint8_t)nic;
	endpoint->provider = provider;
	endpoint->also_tcp = provider == MESH_PROVIDER_VERBS_RXM;
}

/* Here a NIC with RDMA that leads elsewhere, and one without; there the same, and a shared LAN. */
static int setup(void **state)
{
	int i;

	(void)state;
	memset(&setup_state, 0, sizeof(setup_state));
	memset(&handle, 0, sizeof(handle));
	mesh_lock_init(&process->lock);
	process->node_id = 1;
	handle.node_id = 2;
	strcpy(process->config.routed, "off");
	process->num_devs = process->num_endpoints = 2;
	handle.num_endpoints = 2;
	handle.total_nics = 2;
	for (i = 0; i < 2; i++)
		process->nics[i] = &nics[i];
	nics[0].spare_cable = false;
	nics[1].spare_cable = true;
	process->dev_reserves[1] = true;
	endpoint_make(&process->endpoints[0], 0, "10.77.1.1/24", MESH_PROVIDER_VERBS_RXM);
	endpoint_make(&process->endpoints[1], 1, "10.77.9.1/24", MESH_PROVIDER_TCP);
	endpoint_make(&handle.endpoints[0], 0, "10.77.2.2/24", MESH_PROVIDER_VERBS_RXM);
	endpoint_make(&handle.endpoints[1], 1, "10.77.9.2/24", MESH_PROVIDER_TCP);
	return 0;
}

static int num_found(void)
{
	mesh_lock_take(&process->lock);
	mesh_candidates_find(process, 0, &handle, &choice);
	mesh_lock_release(&process->lock);
	return choice.num_candidates;
}

static void answers_order(void)
{
	mesh_lock_take(&process->lock);
	mesh_neighbour_hints_order(process, &handle, &choice);
	mesh_lock_release(&process->lock);
}

/* It may be the management network: neither node has chosen its NIC there. */
static void test_reserve_at_both_ends(void **state)
{
	(void)state;
	handle.endpoints[1].reserve = true;
	assert_int_equal(num_found(), 0);
	strcpy(process->config.routed, "management");
	assert_int_equal(num_found(), 1);
	assert_int_equal(choice.candidates[0].local, 1);
}

/* The other node has chosen the NIC, or it has RDMA there: a cable. */
static void test_reserve_at_one_end(void **state)
{
	(void)state;
	assert_int_equal(num_found(), 1);
	assert_int_equal(choice.candidates[0].local, 1);
	assert_int_equal(choice.candidates[0].remote, 1);
	endpoint_make(&handle.endpoints[1], 1, "10.77.9.2/24", MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(num_found(), 1);
	assert_int_equal(choice.candidates[0].provider, MESH_PROVIDER_TCP);
}

/* Another NIC reaches the node: no reserve is a candidate, whatever its end there is. */
static void test_reserve_unused(void **state)
{
	(void)state;
	endpoint_make(&handle.endpoints[0], 0, "10.77.1.2/24", MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(num_found(), 1);
	assert_int_equal(choice.candidates[0].local, 0);
	assert_int_equal(choice.candidates[0].remote, 0);
	strcpy(process->config.routed, "management");
	assert_int_equal(num_found(), 1);
}

/* A reserve that was a mesh NIC, such as one whose address is gone, needs no such care. */
static void test_reserve_of_another_kind(void **state)
{
	(void)state;
	nics[1].spare_cable = false;
	handle.endpoints[1].reserve = true;
	assert_int_equal(num_found(), 1);
}

/* A drained NIC comes last, and still is a candidate; an allowed reserve comes before it. */
static void test_drained(void **state)
{
	struct mesh_drain_marks marks = {.num = 1};

	(void)state;
	process->dev_reserves[1] = nics[1].spare_cable = false;
	endpoint_make(&handle.endpoints[0], 0, "10.77.1.2/24", MESH_PROVIDER_VERBS_RXM);
	strcpy(nics[0].netdev, "eth0");
	strcpy(nics[1].netdev, "eth1");
	assert_int_equal(num_found(), 2);
	assert_int_equal(choice.candidates[0].local, 0);
	process->drain_marks = &marks;
	strcpy(marks.netdevs[0], "eth0");
	assert_int_equal(num_found(), 2);
	assert_int_equal(choice.candidates[0].local, 1);
	assert_int_equal(choice.candidates[1].local, 0);
	process->dev_reserves[1] = true;
	assert_int_equal(num_found(), 2);
	assert_int_equal(choice.candidates[0].local, 1);
	process->dev_reserves[1] = false;
	handle.num_endpoints = 1;
	assert_int_equal(num_found(), 1);
	assert_int_equal(choice.candidates[0].local, 0);
}

/* The same once neighbours' answers have put the classes in order; what they contradict follows. */
static void test_drained_and_answers(void **state)
{
	static struct mesh_neighbours neighbours;
	struct mesh_drain_marks marks = {.num = 1};
	struct mesh_heard other = {.about = {.node_id = 3}};
	struct mesh_asking *asking = &neighbours.rounds.asking;

	(void)state;
	setup_state.neighbours = &neighbours;
	nics[1].spare_cable = false;
	endpoint_make(&handle.endpoints[0], 0, "10.77.1.2/24", MESH_PROVIDER_VERBS_RXM);
	strcpy(nics[0].netdev, "eth0");
	strcpy(nics[1].netdev, "eth1");
	nics[1].ifindex = 7;
	process->drain_marks = &marks;
	strcpy(marks.netdevs[0], "eth0");
	assert_int_equal(num_found(), 2);
	assert_int_equal(choice.candidates[0].class, MESH_PATH_RESERVE);
	answers_order();
	assert_int_equal(choice.candidates[0].local, 1);
	assert_int_equal(choice.candidates[1].local, 0);
	/* Another node is at the end of that cable. */
	asking->num_links = 1;
	asking->asked[0].ifindex = 7;
	asking->asked[0].heard[0] = &other;
	asking->asked[0].num_heard = 1;
	assert_int_equal(num_found(), 2);
	answers_order();
	assert_int_equal(choice.candidates[0].local, 0);
	assert_int_equal(choice.candidates[1].class, MESH_PATH_UNLIKELY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(test_reserve_at_both_ends),
		TEST(test_reserve_at_one_end),
		TEST(test_reserve_unused),
		TEST(test_reserve_of_another_kind),
		TEST(test_drained),
		TEST(test_drained_and_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
