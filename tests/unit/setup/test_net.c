/* SPDX-License-Identifier: Apache-2.0 */
/* test_net.c - the state of the process that mesh_net_open() makes: the settings are applied. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/comm.h"
#include "setup/setup.h"

#include "comm_inside.h"
#include "transport_pair.h"

#define NAME "not-the-host"

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

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_NODE_NAME", NAME, 1);
}
