/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_link_settle.c - a process connects anew over a link that this end has not lost yet, and that
 * carries nothing but circuits of other nodes: what came over it is fenced before the link is used
 * again, and not later.
 */
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define PROCESS_ID 0x1234

/* What a circuit is to the peer that its segments come from (relay/circuit.c). */
static struct {
	struct mesh_peer_user user;
	bool open;
	int lost, fenced;
} circuit;

static struct mesh_peer *before = &fixture.peers[1], again;
static int fences;

int __real_mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote);
int __wrap_mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	fences++;
	return __real_mesh_sockets_fence(domain, remote);
}

static bool yes(struct mesh_peer_user *user)
{
	return true;
}

static bool circuit_is_open(struct mesh_peer_user *user)
{
	return circuit.open;
}

static void circuit_lost(struct mesh_peer_user *user)
{
	circuit.lost++;
}

static void circuit_fenced(struct mesh_peer_user *user)
{
	circuit.fenced++;
	circuit.open = false;
}

static const struct mesh_peer_user_ops circuit_ops = {
	.answers =
		{
			[MESH_USER_MISSES] = yes,
			[MESH_USER_IS_QUIET] = yes,
			[MESH_USER_IS_OPEN] = circuit_is_open,
		},
	.lost = circuit_lost,
	.fenced = circuit_fenced,
};

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
}

MESH_HOLDS(process)
static void peer_enter(struct mesh_peer *peer)
{
	peer->timer.expired = nothing;
	peer->incoming = true;
	mesh_peer_process_set(peer, PROCESS_ID);
}

void tests_setup(void)
{
	fixture_setup();
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	memset(&circuit, 0, sizeof(circuit));
	memset(&again, 0, sizeof(again));
	circuit.user.ops = &circuit_ops;
	circuit.open = true;
	fences = 0;
	again.process = before->process;
	again.domain = before->domain;
	again.address = before->address;
	again.state = MESH_PEER_HELLO;
	again.watch.fd = -1;
	process_take();
	peer_enter(before);
	peer_enter(&again);
	mesh_link_join(before);
	mesh_peer_user_add(before, &circuit.user);
}

void tests_teardown(void)
{
	if (before->link)
		mesh_link_leave(before);
	mesh_peer_user_remove(before, &circuit.user);
	mesh_peer_process_set(&again, 0);
	mesh_peer_process_set(before, 0);
	process_release();
	fixture_teardown();
}

TEST(circuits_are_fenced_before)
{
	assert_true(mesh_link_settle(&again));
	assert_int_equal(before->state, MESH_PEER_LOST);
	assert_int_equal(circuit.lost, 1);
	assert_int_equal(circuit.fenced, 1);
	assert_int_equal(fences, 2); /* one when the link was lost, one now */
	/* The next one on this link finds nothing to fence. */
	assert_true(mesh_link_settle(&again));
	assert_int_equal(fences, 2);
}

/* The way on of a circuit: nothing of it is written into our memory. */
TEST(nothing_may_arrive)
{
	circuit.open = false;
	assert_true(mesh_link_settle(&again));
	assert_int_equal(before->state, MESH_PEER_UP);
	assert_int_equal(fences, 0);
}
