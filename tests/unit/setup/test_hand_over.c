/* SPDX-License-Identifier: Apache-2.0 */
/* test_hand_over.c - comms that end, or lose a path, while they wait for accept(). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "setup/listener.h"
#include "setup/setup.h"
#include "transport/linger.h"
#include "wire/frame.h"

#include "comm_inside.h"
#include "stranger_fixture.h"

static int setup(void **state)
{
	stranger_setup(state);
	stranger_dial();
	return 0;
}

/* Makes a whole comm as a connector does. Returns the listener's id of it. */
static uint32_t comm_make(uint32_t id, uint64_t key)
{
	struct mesh_frame frame = stranger_connect_make(id, 0, 1);

	frame.connect.comm_key = key;
	stranger_send(&frame, MESH_FRAME_CONNECT);
	return stranger_frame_read(MESH_FRAME_ACCEPT).accept.comm;
}

static void withdraw(uint64_t key)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.withdraw.cookie = stranger.handle.cookie;
	frame.withdraw.listen_id = stranger.handle.listen_id;
	frame.withdraw.comm_key = key;
	stranger_send(&frame, MESH_FRAME_WITHDRAW);
}

/* A connector that gives up before it has the comm leaves room for others. */
static void test_connector_gives_up(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	stranger_introduced();
	comm_make(3, 30);
	comm_make(4, 40);
	withdraw(50);
	withdraw(30);
	stranger_connect_refused(stranger_connect_make(99, 1, 2),
				 MESH_REFUSAL_COOKIE); /* both are handled */
	assert_int_equal(stranger.listener->num_waiting, 1);
	assert_int_equal(stranger.listener->num_left, 1);
	comm = stranger_accepted();
	assert_int_equal(*comm_path(comm, 0).remote_id, 4);
	close(stranger.fd);
	stranger.fd = -1;
	mesh_comm_close(comm);
}

/* NCCL has had the sending end: what is withdrawn is a circuit that came too late for it. */
static void test_withdraw_of_a_circuit(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	stranger_introduced();
	comm_make(3, 30);
	mesh_lock_take(&stranger.net->process->lock);
	comm = stranger.listener->waiting[0];
	comm->rerouted = true;
	mesh_lock_release(&stranger.net->process->lock);
	withdraw(30);
	stranger_connect_refused(stranger_connect_make(99, 1, 2),
				 MESH_REFUSAL_COOKIE); /* it is handled */
	mesh_lock_take(&stranger.net->process->lock);
	comm->paths[0].broken = true; /* nobody connects again for it */
	mesh_lock_release(&stranger.net->process->lock);
	comm = stranger_accepted();
	assert_int_equal(*comm_inside(comm).error, 0);
	close(stranger.fd);
	stranger.fd = -1;
	mesh_comm_close(comm);
}

/* It had the comm, and closes it: NCCL gets its end, which is over. */
static void test_close_before_accept(void **state)
{
	struct mesh_comm *comm;
	struct mesh_frame frame;

	(void)state;
	stranger_introduced();
	memset(&frame, 0, sizeof(frame));
	frame.to_comm = comm_make(3, 30);
	stranger_send(&frame, MESH_FRAME_CLOSED);
	assert_int_equal(stranger_frame_read(MESH_FRAME_CLOSED).to_comm, 3);
	comm = stranger_accepted();
	assert_int_equal(*comm_inside(comm).error, -EPIPE);
	mesh_comm_close(comm);
}

/* accept() was faster than its connector's change of mind. */
static void test_withdraw_after_accept(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	stranger_introduced();
	comm_make(3, 30);
	comm = stranger_accepted();
	withdraw(30);
	assert_int_equal(stranger_frame_read(MESH_FRAME_CLOSED).to_comm, 3);
	assert_int_equal(*comm_inside(comm).error, -EPIPE);
	mesh_comm_close(comm);
}

/* True once the listener knows that a peer with a comm is lost. */
static bool loss_is_known(void)
{
	struct mesh_peer *peer;
	bool known = false;

	mesh_lock_take(&stranger.net->process->lock);
	LIST_FOREACH(peer, &stranger.net->process->peers, entry)
		known |= peer->state == MESH_PEER_LOST && peer->users;
	mesh_lock_release(&stranger.net->process->lock);
	return known;
}

/* The first comm that waits for accept(). */
static struct mesh_comm *first_waiting(void)
{
	struct mesh_comm *comm;

	mesh_lock_take(&stranger.net->process->lock);
	comm = stranger.listener->waiting[0];
	mesh_lock_release(&stranger.net->process->lock);
	return comm;
}

/* As if accept() had doubted so much earlier whether this comm's connector had it. */
static void doubt_age(struct mesh_comm *comm, uint64_t ms)
{
	mesh_lock_take(&stranger.net->process->lock);
	assert_true(comm->doubted_ms);
	comm->doubted_ms -= ms;
	mesh_lock_release(&stranger.net->process->lock);
}

static void nothing_is_accepted(void)
{
	struct mesh_comm *comm;

	assert_int_equal(mesh_listener_accept(stranger.listener, &comm), 0);
	assert_null(comm);
}

/* Lost, perhaps without our ACCEPT: another comm comes first; in the end NCCL gets it. */
static void test_lost_before_accept(void **state)
{
	uint64_t deadline = mesh_clock_ms() + STRANGER_LIMIT_S * 1000;
	struct mesh_comm *comm, *lost;

	(void)state;
	stranger_introduced();
	comm_make(3, 30);
	lost = first_waiting();
	close(stranger.fd);
	while (!loss_is_known())
		assert_true(mesh_clock_ms() < deadline);
	stranger_dial();
	stranger_introduced();
	comm_make(4, 40);
	comm = stranger_accepted();
	assert_int_equal(*comm_path(comm, 0).remote_id, 4);
	close(stranger.fd);
	stranger.fd = -1;
	mesh_comm_close(comm);
	doubt_age(lost, 1000);
	nothing_is_accepted();
	doubt_age(lost, 2000);
	comm = stranger_accepted();
	assert_ptr_equal(comm, lost);
	assert_int_equal(*comm_path(comm, 0).remote_id, 3);
	mesh_comm_close(comm);
}

/* Makes a whole comm with two paths through relays. Returns the listener's id of the first one. */
static uint32_t relayed_comm_make(uint32_t id, uint64_t key)
{
	struct mesh_frame frame;
	uint32_t ids[2];
	int i;

	for (i = 0; i < 2; i++) {
		frame = stranger_connect_make(id + (uint32_t)i, i, 2);
		frame.connect.comm_key = key;
		strcpy(frame.connect.origin, "far");
		strcpy(frame.connect.via, i ? "q" : "p");
		stranger_send(&frame, MESH_FRAME_CONNECT);
		ids[i] = stranger_frame_read(MESH_FRAME_ACCEPT).accept.comm;
	}
	return ids[0];
}

/* The relay, which stays up, reports that the circuit of this path is broken. */
static void circuit_breaks(uint32_t id)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = id;
	frame.circuit.event = MESH_CIRCUIT_LOST;
	strcpy(frame.circuit.lost, "far");
	strcpy(frame.circuit.by, "p");
	stranger_send(&frame, MESH_FRAME_CIRCUIT);
}

/* One of two circuits breaks: another comm comes first; 3 s later NCCL gets this one. */
static void test_circuit_breaks_before_accept(void **state)
{
	struct mesh_comm *broken, *other, *comm;

	(void)state;
	stranger_introduced();
	circuit_breaks(relayed_comm_make(3, 30));
	comm_make(5, 50); /* the break is handled */
	broken = first_waiting();
	other = stranger_accepted();
	assert_int_equal(*comm_path(other, 0).remote_id, 5);
	doubt_age(broken, 1000);
	nothing_is_accepted();
	doubt_age(broken, 2000);
	comm = stranger_accepted();
	assert_ptr_equal(comm, broken);
	assert_int_equal(*comm_path(comm, 0).remote_id, 3);
	assert_int_equal(*comm_inside(comm).error, 0); /* it goes on over its other path */
	close(stranger.fd);
	stranger.fd = -1;
	mesh_comm_close(other);
	mesh_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stranger_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connector_gives_up),	TEST(test_withdraw_of_a_circuit),
		TEST(test_close_before_accept), TEST(test_withdraw_after_accept),
		TEST(test_lost_before_accept),	TEST(test_circuit_breaks_before_accept),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	setenv("NCCL_MESH_DEAD_PEER_TIMEOUT", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
