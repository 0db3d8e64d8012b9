/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_foreign.c - how long a listener of another protocol version is dialled. */
#include "control/peer.h"
#include "nic/addr.h"
#include "setup/connect_advance.h"
#include "setup/connect_try.h"
#include "setup/events.h"
#include "setup/setup.h"

#include "unit.h"

/* Of the other node; this one has a single NIC, so each is dialled by itself. */
#define NICS 3
#define CONTROL_PORT 4000
#define COOKIE 77
/* When the attempt starts and ends, in milliseconds of the clock. */
#define START 100000
#define DEADLINE (START + 60000)

static struct mesh_setup setup_state;
static struct mesh_process *const process = &setup_state.process;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_nic nic;
static struct mesh_domain domain;
static struct mesh_connect attempt;
static struct mesh_peer peers[NICS];

/* Our NIC has been opened, or is still being opened. */
static void nic_opened(bool opened)
{
	process->domains[0] = opened ? &domain : NULL;
	process->dev_states[0] = opened ? MESH_DEV_OPEN : MESH_DEV_OPENING;
	process->opening_ms[0] = UINT64_MAX; /* none of the time for it is over */
}

/* The attempt finds this peer when it dials NIC @i of the other node. */
static void peer_add(int i)
{
	struct mesh_endpoint_addr *endpoint = &attempt.handle.endpoints[i];

	mesh_addr_parse("10.1.0.2", &endpoint->addr);
	endpoint->addr.bytes[1] = (uint8_t)i;
	peers[i] = (struct mesh_peer){
		.process = process,
		.domain = &domain,
		.watch = {.fd = -1},
		.address = *endpoint,
		.control_port = CONTROL_PORT,
		.state = MESH_PEER_CONNECTING,
	};
	LIST_INSERT_HEAD(&process->peers, &peers[i], entry);
	mesh_peer_index_add(&peers[i]);
}

/* An attempt without candidates. */
static int setup(void)
{
	int i;

	memset(&setup_state, 0, sizeof(setup_state));
	memset(&domain, 0, sizeof(domain));
	memset(&attempt, 0, sizeof(attempt));
	mesh_lock_init(&process->lock);
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->counters = &process->own_counters;
	process->events = &mesh_setup_events;
	process->node_id = 1;
	process->config.max_paths = 8;
	strcpy(nic.netdev, "lo"); /* has a carrier */
	process->nics[0] = domain.nic = &nic;
	nic_opened(true);
	attempt.net = &net;
	attempt.state = MESH_CONNECT_PEERS;
	attempt.started_ms = START;
	attempt.deadline_ms = DEADLINE;
	attempt.handle.node_id = 2;
	attempt.handle.control_port = CONTROL_PORT;
	attempt.handle.cookie = COOKIE;
	attempt.handle.foreign = true;
	mesh_lock_take(&process->lock);
	for (i = 0; i < NICS; i++)
		peer_add(i);
	return 0;
}

static int teardown(void)
{
	mesh_connect_try_end(&attempt);
	mesh_lock_release(&process->lock);
	mesh_lock_destroy(&process->lock);
	return 0;
}

TESTS_USE(setup, teardown);

/* From our NIC to the first ones of the other node. */
static void candidates(int num)
{
	for (attempt.choice.num_candidates = 0; attempt.choice.num_candidates < num;
	     attempt.choice.num_candidates++)
		attempt.choice.candidates[attempt.choice.num_candidates].remote =
			(uint8_t)attempt.choice.num_candidates;
}

static void assert_dials_only(const struct mesh_peer *peer)
{
	assert_int_equal(attempt.num_dials, 1);
	assert_ptr_equal(attempt.dials[0].peer, peer);
}

static bool over(uint64_t after_ms)
{
	mesh_connect_advance(&attempt, START + after_ms);
	if (attempt.state != MESH_CONNECT_FAILED)
		return false;
	assert_int_equal(attempt.error, -EPROTONOSUPPORT);
	return true;
}

/* Nobody answers: the only candidate has 5 s. */
TEST(alone)
{
	candidates(1);
	assert_false(over(0));
	assert_dials_only(&peers[0]);
	assert_false(over(4999));
	assert_true(over(5000));
}

/* The connection's own deadline is nearer. */
TEST(deadline)
{
	attempt.deadline_ms = START + 2000;
	candidates(1);
	assert_false(over(0));
	assert_false(over(1999));
	assert_true(over(2000));
}

/* A cable that is dead leaves time for the others, each of which is dialled once. */
TEST(one_after_the_other)
{
	candidates(3);
	assert_false(over(0));
	assert_dials_only(&peers[0]);
	assert_false(over(3000));
	assert_dials_only(&peers[0]);
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	assert_false(over(6002));
	assert_dials_only(&peers[2]);
	assert_false(over(11001));
	assert_dials_only(&peers[2]);
	assert_true(over(11002));
}

TEST(deadline_among_others)
{
	attempt.deadline_ms = START + 4000;
	candidates(3);
	assert_false(over(0));
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	assert_true(over(4000));
}

/* The listener on the second one is told. */
TEST(second_answers)
{
	candidates(2);
	assert_false(over(0));
	assert_false(over(3001));
	assert_dials_only(&peers[1]);
	peers[1].sent_cookie = COOKIE;
	peers[1].refusal = MESH_REFUSAL_VERSION;
	assert_true(over(3002));
}

/* What opening the NIC takes does not count as dialling. */
TEST(slow_nic)
{
	candidates(1);
	nic_opened(false);
	assert_false(over(0));
	assert_false(over(8000));
	nic_opened(true);
	assert_false(over(8001));
	assert_dials_only(&peers[0]);
	assert_false(over(13000));
	assert_true(over(13001));
}
