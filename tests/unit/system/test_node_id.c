/* SPDX-License-Identifier: Apache-2.0 */
/* test_node_id.c - which node this is: one number for all processes, and a name. */
#include "system/node.h"

#include "child.h"

static uint64_t id;

static int is_same(void)
{
	return mesh_node_id() != id;
}

TEST(same_in_every_process)
{
	id = mesh_node_id();
	assert_int_equal(child_run(is_same), 0);
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
