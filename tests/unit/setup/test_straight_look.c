/* SPDX-License-Identifier: Apache-2.0 */
/* test_straight_look.c - when a way without a relay is tried, and which one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "setup/candidates.h"
#include "setup/neighbour_hints.h"
#include "setup/straight.h"
#include "transport/path_relayed.h"
#include "transport/reroute.h"

#include "comm_fixture.h"

#define NOW 1000000
#define WAYS 3

static struct mesh_comm *comm;
static struct mesh_handle handle;
static struct mesh_straight *straight;
static struct mesh_peer peers[WAYS]; /* by the remote end of the way */
static struct mesh_peer *asked;	     /* for the path, which does not rest; or NULL */
static bool unlikely;		     /* neighbours contradict way 0 */
static bool small;		     /* way 0 is over RDMA */
static struct mesh_route lost_route;

void __wrap_mesh_candidates_find(struct mesh_process *process, int dev,
				 const struct mesh_handle *of, struct mesh_path_choice *choice);
void __wrap_mesh_candidates_find(struct mesh_process *process, int dev,
				 const struct mesh_handle *of, struct mesh_path_choice *choice)
{
	int i;

	(void)process;
	(void)dev;
	assert_ptr_equal(of, &handle);
	memset(choice, 0, sizeof(*choice));
	choice->num_candidates = WAYS;
	for (i = 0; i < WAYS; i++) {
		choice->candidates[i].remote = (uint8_t)i;
		choice->candidates[i].provider = i || !small ? MESH_PROVIDER_TCP
							     : MESH_PROVIDER_VERBS_RXM;
	}
}

void __wrap_mesh_neighbour_hints_order(struct mesh_process *process, const struct mesh_handle *of,
				       struct mesh_path_choice *choice);
void __wrap_mesh_neighbour_hints_order(struct mesh_process *process, const struct mesh_handle *of,
				       struct mesh_path_choice *choice)
{
	int i;

	(void)process;
	(void)of;
	for (i = 0; i < WAYS && unlikely; i++)
		choice->candidates[i].remote = (uint8_t)((i + 1) % WAYS);
}

int __wrap_mesh_peer_get(struct mesh_process *process, struct mesh_domain *domain,
			 const struct mesh_endpoint_addr *address, uint16_t control_port,
			 uint32_t listen_id, uint64_t cookie, struct mesh_peer **peer);
int __wrap_mesh_peer_get(struct mesh_process *process, struct mesh_domain *domain,
			 const struct mesh_endpoint_addr *address, uint16_t control_port,
			 uint32_t listen_id, uint64_t cookie, struct mesh_peer **peer)
{
	(void)process;
	(void)domain;
	(void)control_port;
	(void)listen_id;
	(void)cookie;
	*peer = &peers[address - handle.endpoints];
	(*peer)->users++;
	return 0;
}

int __wrap_mesh_reroute_begin_straight(struct mesh_path *path, struct mesh_peer *peer);
int __wrap_mesh_reroute_begin_straight(struct mesh_path *path, struct mesh_peer *peer)
{
	(void)path;
	asked = peer;
	return -EAGAIN;
}

const struct mesh_route *__wrap_mesh_path_relayed_route(const struct mesh_path *path);
const struct mesh_route *__wrap_mesh_path_relayed_route(const struct mesh_path *path)
{
	(void)path;
	return &lost_route;
}

static int setup(void **state)
{
	struct mesh_process *process;
	int i;

	fixture_setup(state);
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	process = comm->process;
	process->config.recovery_timeout_s = 30;
	process->dev_states[0] = MESH_DEV_OPEN;
	process->domains[0] = fixture.domains[0];
	process->endpoints[0].nic = 0;
	process->providers[0] = MESH_PROVIDER_TCP;
	memset(peers, 0, sizeof(peers));
	for (i = 0; i < WAYS; i++) {
		peers[i].process = process;
		peers[i].users = 1; /* a test's */
		peers[i].state = MESH_PEER_CONNECTING;
	}
	memset(&lost_route, 0, sizeof(lost_route));
	unlikely = small = false;
	straight = mesh_straight_open(&handle);
	mesh_lock_take(&process->lock);
	return 0;
}

static int teardown(void **state)
{
	mesh_straight_close(straight);
	mesh_lock_release(&comm->process->lock);
	comm->process->domains[0] = NULL;
	fixture_comm_close(comm);
	return fixture_teardown(state);
}

/* Looks; returns the way that it holds now, or -1. */
static int look(uint64_t now_ms)
{
	int i, held = -1;

	asked = NULL;
	assert_null(mesh_straight_look(straight, comm, now_ms));
	for (i = 0; i < WAYS; i++) {
		assert_in_range(peers[i].users, 1, 2);
		if (peers[i].users == 2)
			held = i;
	}
	return held;
}

/* Relays have their time, and more of it where they had RDMA. */
static void test_patience(void **state)
{
	(void)state;
	assert_int_equal(look(NOW), -1);
	assert_int_equal(look(NOW + 1999), -1);
	lost_route.rdma = true;
	assert_int_equal(look(NOW + 9999), -1);
	assert_int_equal(look(NOW + 10000), 0);
}

/* So they have when the comm has lost its path again, and what was tried before is let go. */
static void test_restart(void **state)
{
	(void)state;
	look(NOW);
	assert_int_equal(look(NOW + 2000), 0);
	mesh_straight_restart(straight);
	assert_int_equal(peers[0].users, 1);
	assert_int_equal(look(NOW + 60000), -1);
	assert_int_equal(look(NOW + 61999), -1);
	assert_int_equal(look(NOW + 62000), 0);
}

/* The next one has its turn when one is silent, refused, or lost; then all of them again. */
static void test_turns(void **state)
{
	(void)state;
	look(NOW);
	assert_int_equal(look(NOW + 2000), 0);
	assert_int_equal(look(NOW + 4999), 0);
	assert_int_equal(look(NOW + 5000), 1);
	peers[1].refusal = MESH_REFUSAL_COOKIE;
	assert_int_equal(look(NOW + 5020), 2);
	peers[2].state = MESH_PEER_LOST;
	assert_int_equal(look(NOW + 5040), 0);
}

/* Links on which the node does not answer come last, as when NCCL connects. */
static void test_unlikely(void **state)
{
	(void)state;
	unlikely = true;
	look(NOW);
	assert_int_equal(look(NOW + 2000), 1);
	assert_int_equal(look(NOW + 5000), 2);
	assert_int_equal(look(NOW + 8000), 0);
}

/* One that is up has its turn when the relay that is asked has answered, however late that is. */
static void test_waits_for_relay(void **state)
{
	(void)state;
	look(NOW);
	assert_int_equal(look(NOW + 2000), 0);
	peers[0].state = MESH_PEER_UP;
	assert_int_equal(look(NOW + 17000), 0);
	assert_ptr_equal(asked, &peers[0]);
	mesh_straight_next(straight); /* the other end has refused */
	assert_int_equal(look(NOW + 17020), 1);
}

/* A comm whose first circuit was over tcp has larger messages than there are over RDMA. */
static void test_too_small(void **state)
{
	struct mesh_process *process = comm->process;
	const size_t before = comm->eager_limit;

	(void)state;
	small = true;
	process->providers[0] = MESH_PROVIDER_VERBS_RXM;
	process->also_tcp[0] = true;
	process->dev_states[mesh_second_domain(0)] = MESH_DEV_OPEN;
	process->domains[mesh_second_domain(0)] = fixture.domains[0];
	look(NOW);
	assert_int_equal(look(NOW + 2000), 0);
	mesh_straight_restart(straight);
	comm->eager_limit = process->config.eager_limit_bytes = (size_t)16 << 10;
	look(NOW + 3000);
	assert_int_equal(look(NOW + 5000), 1);
	comm->eager_limit = before;
	process->domains[mesh_second_domain(0)] = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_patience), TEST(test_restart),	 TEST(test_turns),
		TEST(test_unlikely), TEST(test_waits_for_relay), TEST(test_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
