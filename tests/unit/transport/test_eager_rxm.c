/* SPDX-License-Identifier: Apache-2.0 */
/* test_eager_rxm.c - ofi_rxm gets the small messages that it sends well, whatever the setting. */
#include <stdlib.h>

#include "transport/comm.h"
#include "setup/setup.h"

#include "comm_inside.h"
#include "transport_pair.h"

#define LIMIT 8192

TEST(limit)
{
	struct pair pair;

	pair_open(&pair);
	assert_int_equal(pair.net->process->domains[0]->payload_max, LIMIT);
	assert_int_equal(*comm_inside(pair.send).eager_limit, LIMIT);
	message_move(&pair, LIMIT, LIMIT, true);
	assert_int_equal(comm_path(pair.send, 0).counters->small, 1);
	message_move(&pair, LIMIT + 1, LIMIT + 1, false);
	assert_int_equal(comm_path(pair.send, 0).counters->messages, 2);
	assert_int_equal(comm_path(pair.send, 0).counters->small, 1);
	pair_close(&pair);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp;ofi_rxm", 1);
	setenv("NCCL_MESH_EAGER_LIMIT", "64K", 1);
}
