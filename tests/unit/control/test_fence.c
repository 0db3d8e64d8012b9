/* SPDX-License-Identifier: Apache-2.0 */
/* test_fence.c - how long the loss of a peer waits for the polls after its fence. */
#include "base/clock.h"
#include "control/peer_fence.h"
#include "transport/cut.h"

#include "comm_fixture.h"
#include "fake_clock.h"
#include "log_capture.h"

/* What a thread waits at most that holds process->lock, in milliseconds. */
#define LIMIT_MS 3000

bool __real_mesh_domain_poll(struct mesh_domain *domain);
bool __wrap_mesh_domain_poll(struct mesh_domain *domain);

static int busy_polls; /* so many attempts find that another thread polls, and stays there */
static struct mesh_comm *watched; /* is to have an error at each poll; or NULL */

bool __wrap_mesh_domain_poll(struct mesh_domain *domain)
{
	fake_clock_us += 1000;
	assert_true(!watched || *comm_inside(watched).error);
	return --busy_polls < 0 && __real_mesh_domain_poll(domain);
}

/* Returns how long the fence took, in milliseconds. */
static uint64_t fence(int busy)
{
	struct mesh_process *process = &fixture.setup.process;
	uint64_t begin_ms, end_ms;

	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	mesh_lock_take(&process->lock);
	busy_polls = busy;
	begin_ms = mesh_clock_ms();
	assert_true(mesh_peer_fence(&fixture.peers[0]));
	end_ms = mesh_clock_ms();
	busy_polls = 0;
	mesh_lock_release(&process->lock);
	return end_ms - begin_ms;
}

/* A verbs NIC that is connecting polls again after 2 s. */
static void test_polls_come_late(void **state)
{
	(void)state;
	assert_in_range(fence(2000), 2000, LIMIT_MS);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

static void test_polls_never_come(void **state)
{
	(void)state;
	assert_in_range(fence(100000), 2000, LIMIT_MS);
	assert_true(log_captured(MESH_LOG_WARN, "could not be polled"));
}

/* A comm that is cut off returns its memory to NCCL: it waits as well. */
static void test_cut_off_waits(void **state)
{
	struct mesh_comm *comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	uint64_t begin_ms = mesh_clock_ms();

	(void)state;
	busy_polls = 2000;
	mesh_comm_cut_off(comm, MESH_CUT_SILENT);
	assert_in_range(mesh_clock_ms() - begin_ms, 2000, LIMIT_MS);
	busy_polls = 0;
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_comm_close(comm);
}

/*
 * One that owes the receiver messages goes on until it is cut off. Then no path of it may get
 * another peer, as those of comms without an error do: the fence uses the remotes that it has.
 */
static void test_cut_off_while_it_delivers(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	mesh_comm_lock(comm);
	comm->closing = true;
	assert_true(mesh_comm_delivers(comm));
	mesh_comm_unlock(comm);
	watched = comm;
	mesh_comm_cut_off(comm, MESH_CUT_STUCK);
	watched = NULL;
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_polls_come_late),
		TEST(test_polls_never_come),
		TEST(test_cut_off_waits),
		TEST(test_cut_off_while_it_delivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
