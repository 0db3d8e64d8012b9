/* SPDX-License-Identifier: Apache-2.0 */
/* test_losses.c - which losses of peers are reported with lines of their own. */
#include <unistd.h>

#include "control/peer_end.h"
#include "control/peer_index.h"
#include "transport/comm_open.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define PROCESS 7

/*
 * Two peers of one process, on one of our NICs, are lost; the second one is at @address. Returns
 * how many lines of WARN there were.
 */
static int losses(const char *address)
{
	struct mesh_comm *comms[2] = {NULL};
	int i;

	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++) {
		mesh_peer_process_set(&fixture.peers[i], PROCESS);
		assert_int_equal(
			mesh_comm_open(&fixture.net, true, &fixture.peers[i], 1, 1, &comms[i]), 0);
	}
	mesh_addr_parse(address, &fixture.peers[1].address.addr);
	mesh_peer_lose(&fixture.peers[0], "first");
	fixture.peers[1].domain = fixture.peers[0].domain;
	mesh_peer_lose(&fixture.peers[1], "second");
	fixture.peers[1].domain = fixture.domains[1];
	for (i = 0; i < 2; i++) {
		mesh_comm_free(comms[i]);
		mesh_peer_index_remove(&fixture.peers[i]);
	}
	fixture.peers[0].watch.fd = dup(fixture.frames); /* the fixture closes it */
	mesh_lock_release(&fixture.setup.process.lock);
	return log_captured_lines(MESH_LOG_WARN);
}

static void test_one_link(void **state)
{
	(void)state;
	assert_int_equal(losses("10.7.0.2"), 1);
}

/* Behind a switch one NIC reaches several NICs of a process. */
static void test_two_links(void **state)
{
	(void)state;
	assert_int_equal(losses("10.7.0.3"), 2);
	assert_true(log_captured(MESH_LOG_WARN, "lost node b (10.7.0.3)"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_link),
		TEST(test_two_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
