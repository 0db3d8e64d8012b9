/* SPDX-License-Identifier: Apache-2.0 */
/* test_carriers.c - a NIC that loses its carrier loses the links whose comms go on without it. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "setup/carriers.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define PROCESS 77

static struct mesh_comm *comm; /* two paths, to the process of both peers */
static struct mesh_peer deaf;  /* the same process over a third link, whose frames nobody reads */

static void peer_enter(struct mesh_peer *peer)
{
	LIST_INSERT_HEAD(&peer->process->peers, peer, entry);
	mesh_peer_process_set(peer, PROCESS);
	mesh_link_watch(peer);
}

static int setup(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	fixture_setup(state);
	process->config.recovery = 1;
	process->config.dead_peer_timeout_s = 600;
	process->engine.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(process->engine.epoll_fd >= 0);
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	memset(&deaf, 0, sizeof(deaf));
	deaf.process = process;
	deaf.domain = fixture.domains[0];
	deaf.state = MESH_PEER_UP;
	deaf.watch.fd = dup(fixture.frames);
	deaf.out_size = MESH_PEER_OUT_MAX;
	deaf.out = calloc(1, MESH_PEER_OUT_MAX);
	mesh_addr_parse("10.7.0.3", &deaf.address.addr);
	mesh_lock_take(&process->lock);
	return 0;
}

static int teardown(void **state)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_link_leave(&fixture.peers[i]);
	mesh_link_leave(&deaf);
	assert_true(LIST_EMPTY(&fixture.setup.process.links));
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
	free(deaf.out);
	close(fixture.setup.process.engine.epoll_fd);
	fixture.setup.process.engine.epoll_fd = -1;
	return fixture_teardown(state);
}

/*
 * The loss of a link is reported over the others, and one of them is lost soon after, because
 * its process does not read: it is the next one on the list of links.
 */
static void test_next_link_ends_meanwhile(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	(void)state;
	peer_enter(&fixture.peers[0]);
	peer_enter(&deaf);
	peer_enter(&fixture.peers[1]);
	assert_ptr_equal(LIST_FIRST(&process->links), fixture.peers[1].link);
	assert_ptr_equal(LIST_NEXT(fixture.peers[1].link, entry), deaf.link);
	/* The NIC that the fixture names does not exist. */
	process->domains[0] = fixture.domains[1];
	mesh_carriers_check(process);
	mesh_peer_use(&deaf);
	mesh_peer_tick(&deaf, mesh_clock_ms());
	assert_true(log_captured(MESH_LOG_INFO, "it does not read its control connection"));
	assert_int_equal(fixture.peers[1].state, MESH_PEER_LOST);
	assert_int_equal(fixture.peers[0].state, MESH_PEER_UP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_next_link_ends_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
