/* SPDX-License-Identifier: Apache-2.0 */
/* test_node_id.c - which node this is: one number for all processes, and a name. */
#include <sys/wait.h>

#include "system/node_id.h"

#include "unit.h"

TEST(same_in_every_process)
{
	uint64_t id = mesh_node_id();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(mesh_node_id() == id ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(id == mesh_node_id() && id != 0);
}

TEST(name)
{
	char name[65], host[65] = "", small[4];

	assert_string_equal(mesh_node_name("spark1", name, sizeof(name)), "spark1");
	assert_string_equal(mesh_node_name("spark1", small, sizeof(small)), "spa");
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_string_equal(mesh_node_name("", name, sizeof(name)), host);
	memset(small, 'x', sizeof(small));
	mesh_node_name("", small, sizeof(small)); /* whatever the host is called, it ends */
	assert_non_null(memchr(small, '\0', sizeof(small)));
}
