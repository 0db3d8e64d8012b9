/* SPDX-License-Identifier: Apache-2.0 */
/* test_settings.c - what the plugin does with settings that it cannot use. */
#include "setup/net.h"

#include "log_capture.h"
#include "unit.h"

/* Other NICs than the user's choice may be the wrong ones: then nothing starts. */
TEST(list_too_long)
{
	static const char *const names[] = {"NCCL_MESH_NICS", "NCCL_MESH_ADDRESSES",
					    "NCCL_MESH_PROVIDER"};
	struct mesh_net *net;
	char list[600];

	memset(list, 'e', sizeof(list) - 1);
	list[sizeof(list) - 1] = '\0';
	FOR_EACH(i, names) {
		setenv(names[i], list, 1);
		log_capture_start();
		assert_int_equal(mesh_net_open(&net), -E2BIG);
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
		assert_true(log_captured(MESH_LOG_WARN, names[i]));
		assert_true(log_captured(MESH_LOG_WARN, "has 599 bytes, the limit is 511"));
		unsetenv(names[i]);
	}
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_NODE_NAME", list, 1); /* it has a default that works */
	assert_int_equal(mesh_net_open(&net), 0);
	mesh_net_close(net);
}
