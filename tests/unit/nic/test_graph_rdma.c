/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_rdma.c - routes with RDMA on each hop come before others. */
#include "graph_fixture.h"

TESTS_USE(setup, teardown);

/* It goes before wider and shorter ones, and these are not used beside it. */
TEST(rdma_first)
{
	cables("ab100000 bz100000 ac10000+ cz10000+ ad10000+ de10000+ ez10000+");
	report("abcdez");
	finds('a', 'z', 15, "cz:10000+ dez:10000-+ bz:100000-");
	/* Without c the longer one goes first. */
	unsaid("c");
	finds('a', 'z', 15, "dez:10000+ bz:100000-");
}

/* Both have RDMA, and are as long: then the widest first, and they are used together. */
TEST(alike)
{
	cables("ab10000+ bz10000+ ac40000+ cz40000+");
	report("abcz");
	finds('a', 'z', 15, "cz:40000+ bz:10000+");
}

/* A hop has RDMA if one of its cables has it at both ends: that cable is the one that is taken. */
TEST(hops)
{
	cables("ab100000< bz100000+ ac100000> cz100000+ ad100000 ad1000+ de10000+ ez10000+");
	report("abcdez");
	assert_int_equal(mesh_graph_hop(&graph, 0, mesh_graph_find(&graph, 'b')).rdma_mbps, 0);
	assert_int_equal(mesh_graph_hop(&graph, 0, mesh_graph_find(&graph, 'c')).rdma_mbps, 0);
	assert_int_equal(mesh_graph_hop(&graph, 0, mesh_graph_find(&graph, 'd')).rdma_mbps, 1000);
	assert_int_equal(mesh_graph_hop(&graph, 0, mesh_graph_find(&graph, 'd')).mbps, 101000);
	finds('a', 'z', 15, "dez:1000+ bz:100000- cz:100000-");
}

/* Inside the site first; among those over another one, RDMA counts again. */
TEST(sites)
{
	cables("ab1000 bz1000 ax100000 xz100000 ay1000+ yw1000+ wz1000+");
	report("abwxyz");
	site_set("abz", 1);
	site_set("wxy", 2);
	finds('a', 'z', 15, "bz:1000 ywz:1000-+^ xz:100000-^");
	/* Nothing inside leads there. */
	unsaid("b");
	finds('a', 'z', 15, "ywz:1000+^ xz:100000-^");
}

/* A cable between the two goes before everything, with all that it carries. */
TEST(direct)
{
	cables("az1000 ab100000+ bz100000+");
	report("abz");
	finds('a', 'z', 15, "z:1000 bz:100000-+");
	cables("az500+");
	report("az");
	finds('a', 'z', 15, "z:1500+ bz:100000-+");
}

/* A link that is reported twice has RDMA if one of the reports says so. */
TEST(twice)
{
	struct mesh_graph_link again;

	cables("az1000<");
	report("az");
	assert_int_equal(mesh_graph_hop(&graph, 0, 1).rdma_mbps, 0);
	again = said['z'][0];
	again.rdma = true;
	assert_int_equal(mesh_graph_report(&graph, 'z', true, true, &again, 1), 1);
	assert_int_equal(graph.nodes[1].num_links, 1);
	assert_int_equal(mesh_graph_hop(&graph, 0, 1).rdma_mbps, 1000);
	again.rdma = false;
	assert_int_equal(mesh_graph_report(&graph, 'z', true, true, &again, 1), 1);
	assert_int_equal(mesh_graph_hop(&graph, 0, 1).rdma_mbps, 1000);
}

/* What is said of a good route with this one change. */
#define ROUTE_IS(expression, change, wanted)                                                       \
	do {                                                                                       \
		route = good;                                                                      \
		change;                                                                            \
		assert_int_equal(expression, wanted);                                              \
	} while (0)

TEST(fits)
{
	const struct mesh_route good = {.num_relays = 1, .rdma = true};
	struct mesh_route route;

	ROUTE_IS(mesh_route_fits(&good, &route), route.width_mbps = 7, true);
	ROUTE_IS(mesh_route_fits(&good, &route), route.rdma = false, false);
	ROUTE_IS(mesh_route_fits(&route, &good), route.rdma = false, false);
	ROUTE_IS(mesh_route_fits(&good, &route), route.num_relays = 2, false);
	ROUTE_IS(mesh_route_fits(&good, &route), route.leaves = true, false);
	ROUTE_IS(mesh_route_fits(&good, &route), route.drained = true, false);
}

/* A shorter route shares a relay with the first one: it is only found without the other relay. */
TEST(shared_relay)
{
	cables("ab10000+ bc10000+ cz10000+ ac10000");
	report("abcz");
	finds('a', 'z', 15, "bcz:10000+");
	finds_beside('a', 'z', "b", "cz:10000");
}
