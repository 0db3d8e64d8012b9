/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net.c - the state of the process that mesh_net_open() makes: the settings are applied. A
 * node whose setting allows no message by copy, however small, gets none.
 */
#include "transport/comm.h"
#include "setup/setup.h"

#include "comm_inside.h"
#include "transport_pair.h"

#define NAME "not-the-host"

/* The other side must know: its own setting may allow more. First: there are no other peers yet. */
TEST(hello_has_the_setting)
{
	struct mesh_peer *peer;
	struct mesh_process *process;
	uint32_t limit = 0;
	struct pair pair;
	int count = 0;

	pair_open(&pair);
	process = pair.send->process;
	mesh_lock_take(&process->lock);
	LIST_FOREACH(peer, &process->peers, entry) {
		limit |= peer->eager_limit;
		count++;
	}
	mesh_lock_release(&process->lock);
	assert_int_equal(limit, 0);
	assert_int_equal(count, 2); /* as each end sees the other */
	pair_close(&pair);
}

/* Our own messages have the name that NCCL_MESH_NODE_NAME gives, and peers learn it from HELLO. */
TEST(name_is_the_settings)
{
	char host[MESH_NODE_NAME_MAX] = "";
	struct pair pair;

	gethostname(host, sizeof(host) - 1);
	assert_string_not_equal(host, NAME);
	pair_open(&pair);
	assert_string_equal(pair.net->process->name, NAME);
	assert_string_equal(comm_inside(pair.receive).peer_name, NAME);
	assert_string_equal(comm_inside(pair.send).peer_name, NAME);
	pair_close(&pair);
}

TEST(nothing_is_copied)
{
	struct pair pair;

	pair_open(&pair);
	message_move(&pair, 1, 1, false);
	message_move(&pair, 1000, 4096, true);
	message_move(&pair, 100000, 100000, false);
	assert_int_equal(comm_path(pair.send, 0).counters->messages, 3);
	assert_int_equal(comm_path(pair.send, 0).counters->small, 0);
	pair_close(&pair);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_NODE_NAME", NAME, 1);
	setenv("NCCL_MESH_DEBUG_EAGER_LIMIT", "0", 1);
}
