/* SPDX-License-Identifier: Apache-2.0 */
/* test_eager_off.c - a node whose setting allows no message by copy, however small, gets none. */
#include <stdlib.h>

#include "transport/comm.h"
#include "setup/setup.h"

#include "comm_inside.h"
#include "transport_pair.h"

/* The other side must know: its own setting may allow more. */
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
	setenv("NCCL_MESH_EAGER_LIMIT", "0", 1);
}
