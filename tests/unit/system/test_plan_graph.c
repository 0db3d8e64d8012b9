/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph.c - plans that users write down, and what NCCL's patterns cost on them. */
#include "system/tuner_plan.h"

#include "unit.h"

static struct mesh_plan_graph graph;
static int line;

static void parsed(const char *text)
{
	assert_int_equal(mesh_plan_graph_parse(text, &graph, &line), 0);
}

static void refused(const char *text, int error, int at)
{
	assert_int_equal(mesh_plan_graph_parse(text, &graph, &line), error);
	assert_int_equal(line, at);
	assert_int_equal(graph.num_nodes, 0);
}

TEST(parse)
{
	parsed("# triangle\r\n\n a:enp1s0 b:enp2s0 # a cable\nb:x c\nc\ta\nc a");
	assert_int_equal(graph.num_nodes, 3);
	assert_string_equal(graph.names[2], "c");
	assert_int_equal(graph.cables[0][1], 1);
	assert_int_equal(graph.cables[2][0], 2);
	assert_int_equal(graph.cables[0][2], 2);
	assert_true(mesh_plan_graph_is_full(&graph));
	parsed("");
	assert_int_equal(graph.num_nodes, 0);
	/* Lines with one node only say which rank it has. */
	parsed("c\nb\na\na b\nb c\n");
	assert_string_equal(graph.names[0], "c");
	assert_int_equal(graph.cables[2][1], 1);
	assert_false(mesh_plan_graph_is_full(&graph));
}

TEST(refused)
{
	char long_name[MESH_PLAN_NODE_NAME_MAX + 10], many[1000] = "";

	refused("a b\na b c", -EINVAL, 2);
	refused("a a", -EINVAL, 1);
	refused(":x b", -EINVAL, 1);
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	refused(long_name, -EINVAL, 1);
	for (int i = 0; i <= MESH_PLAN_NODES_MAX; i++)
		sprintf(many + strlen(many), "n%d\n", i);
	refused(many, -E2BIG, MESH_PLAN_NODES_MAX + 1);
}

TEST(digest)
{
	uint64_t digest;

	parsed("a b\nb c\nc d\nd a\n");
	digest = mesh_plan_graph_digest(&graph);
	/* Other names, other ports, other order of cables, but the same mesh for the same ranks. */
	parsed("w:1 x:1\nx y\nz:2 y:7\nw z # ring");
	assert_true(mesh_plan_graph_digest(&graph) == digest);
	parsed("a b\nb c\nc d\n");
	assert_true(mesh_plan_graph_digest(&graph) != digest);
	parsed("a b\nb c\nc d\nd a\na b\n");
	assert_true(mesh_plan_graph_digest(&graph) != digest);
	parsed("a b\na c\nc d\nd b\n");
	assert_true(mesh_plan_graph_digest(&graph) != digest);
}

TEST(ring)
{
	parsed("a b\nb c\nc d\nd a\n");
	assert_true(mesh_plan_graph_has_ring(&graph));
	/* The same cables in another order of ranks. */
	parsed("a\nc\na b\nb c\nc d\nd a\n");
	assert_false(mesh_plan_graph_has_ring(&graph));
	parsed("a b\nb c\nc d\n");
	assert_false(mesh_plan_graph_has_ring(&graph));
}
